# Fenwick tree indexed by the raw height: the table ends at 100000
import sys

LIMIT = 100_000


def solve(n, s, a, b, m):
    tree = [0] * LIMIT
    for _ in range(n):
        i = s
        best = 0
        while i > 0:
            best = max(best, tree[i])
            i &= i - 1
        i = s + 1
        best += 1
        tree[i] = max(tree[i], best)
        while i < min(m + 1, LIMIT):
            tree[i] = max(tree[i], best)
            i += i & -i
        s = (a * s + b) % m
    return max(tree)


for line in sys.stdin.readlines()[1:]:
    print(solve(*map(int, line.split())))
