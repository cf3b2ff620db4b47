# halve n recursively (depth log n) and remember the half way results
import sys
from functools import lru_cache

a, b, m, x0, x1 = map(int, sys.stdin.readline().split())


@lru_cache(maxsize=None)
def unit(n):
    """The pair (u_n, u_(n+1)) of the sequence that starts 0, 1."""
    if n == 0:
        return 0, 1
    u, w = unit(n >> 1)
    even = u * (2 * w - a * u) % m
    odd = (w * w + b * u * u) % m
    if n & 1:
        return odd, (a * odd + b * even) % m
    return even, odd


for line in sys.stdin.read().split()[1:]:
    n = int(line)
    if n:
        before, here = unit(n - 1)
        print((here * x1 + b * before * x0) % m)
    else:
        print(x0)
