# deque: rotate the counted children to the back, pop the next one
from collections import deque


def which(n, k, q):
    ring = deque(range(1, n + 1))
    for _ in range(q - 1):
        ring.rotate(-((k - 1) % len(ring)))
        ring.popleft()
    return ring[(k - 1) % len(ring)]


t = int(input())
for _ in range(t):
    print(which(*map(int, input().split())))
