# longest path by relaxing every pair of days until nothing changes
import sys


def solve(xs):
    n = len(xs)
    length = [1] * n
    changed = True
    while changed:
        changed = False
        for i in range(n - 1, -1, -1):
            for j in range(i):
                if xs[j] < xs[i] and length[j] >= length[i]:
                    length[i] = length[j] + 1
                    changed = True
    return max(length)


for line in sys.stdin.readlines()[1:]:
    n, s, a, b, m = map(int, line.split())
    xs = []
    for _ in range(n):
        xs.append(s)
        s = (a * s + b) % m
    print(solve(xs))
