# hyperbola method, but subtracts the left end as well
import sys
from math import isqrt


def total(n):
    root = isqrt(n)
    s = sum(d * (n // d) + (n // d) * (n // d + 1) // 2 for d in range(1, root + 1))
    return s - root * root * (root + 1) // 2


for line in sys.stdin.readlines()[1:]:
    l, r = map(int, line.split())
    print(total(r) - total(l))
