# hyperbola method with list comprehensions, one evaluation for each distinct end
import sys
from math import isqrt


def total(n):
    root = isqrt(n)
    quotients = [n // d for d in range(1, root + 1)]
    small = sum([d * q for d, q in enumerate(quotients, 1)])
    large = (sum([q * q for q in quotients]) + sum(quotients)) // 2
    return small + large - root * root * (root + 1) // 2


ends = [int(x) for x in sys.stdin.read().split()[1:]]
memo = {}
for l, r in zip(ends[::2], ends[1::2]):
    for x in (l - 1, r):
        if x not in memo:
            memo[x] = total(x)
    print(memo[r] - memo[l - 1])
