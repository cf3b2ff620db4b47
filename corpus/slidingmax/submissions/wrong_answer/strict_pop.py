# forgets to drop the leaver when it is not at the front by index but by value (breaks on ties)
from collections import deque

n, q = map(int, input().split())
a = list(map(int, input().split()))
for k in map(int, input().split()):
    dq = deque()
    s = 0
    for i, v in enumerate(a):
        if i >= k and dq and dq[0] == a[i - k]:
            dq.popleft()
        while dq and dq[-1] <= v:
            dq.pop()
        dq.append(v)
        if i >= k - 1:
            s += dq[0]
    print(s)
