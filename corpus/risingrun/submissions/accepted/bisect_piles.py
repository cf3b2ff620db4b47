# patience piles with bisect_left, line by line
from bisect import bisect_left


def piles_of(values):
    piles = []
    for v in values:
        k = bisect_left(piles, v)
        if k == len(piles):
            piles.append(v)
        else:
            piles[k] = v
    return piles


def values_of(n, s, a, b, m):
    for _ in range(n):
        yield s
        s = (a * s + b) % m


t = int(input())
for _ in range(t):
    print(len(piles_of(values_of(*map(int, input().split())))))
