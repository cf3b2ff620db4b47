# scales a mean over the range by its length, divides by r - l
import sys
from math import isqrt


def total(n):
    root = isqrt(n)
    s = sum(d * (n // d) + (n // d) * (n // d + 1) // 2 for d in range(1, root + 1))
    return s - root * root * (root + 1) // 2


for line in sys.stdin.readlines()[1:]:
    l, r = map(int, line.split())
    gap = total(r) - total(l - 1)
    print(gap // (r - l) * (r - l) + gap % (r - l))
