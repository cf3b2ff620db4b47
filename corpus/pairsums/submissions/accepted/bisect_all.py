# sort, then two binary searches for every weight
import sys
from bisect import bisect_left, bisect_right

n, q = map(int, sys.stdin.readline().split())
a = sorted(int(sys.stdin.readline()) for _ in range(n))


def how_many(value):
    return bisect_right(a, value) - bisect_left(a, value)


for _ in range(q):
    kind, x = sys.stdin.readline().split()
    x = int(x)
    total = 0
    if kind == "s":
        for v in a:
            total += how_many(x - v)
        if x % 2 == 0:
            total -= how_many(x // 2)
        total //= 2
    else:
        for v in a:
            total += how_many(v + x)
        if x == 0:
            total = (total - n) // 2
    print(total)
