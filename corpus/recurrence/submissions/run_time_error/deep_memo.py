# remembers results but recurses one step at a time
import sys
from functools import lru_cache

a, b, m, x0, x1 = map(int, input().split())


@lru_cache(maxsize=None)
def x(n):
    if n < 2:
        return (x0, x1)[n]
    return (a * x(n - 1) + b * x(n - 2)) % m


for line in sys.stdin.read().split()[1:]:
    print(x(int(line)))
