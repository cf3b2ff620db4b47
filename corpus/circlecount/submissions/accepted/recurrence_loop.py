# plain backward recurrence, one step per child
import sys

lines = sys.stdin.readlines()


def solve(n, k, q):
    first = n - q + 1
    pos = (k - 1) % first
    for size in range(first + 1, n + 1):
        pos = (pos + k) % size
    return pos + 1


for line in lines[1 : int(lines[0]) + 1]:
    print(solve(*map(int, line.split())))
