# hyperbola method: sum of d * (n // d) in blocks, for both ends of every range
import sys
from math import isqrt


def total(n):
    """Sum of the divisor sums of 1..n."""
    root = isqrt(n)
    result = 0
    for d in range(1, root + 1):
        q = n // d
        result += d * q + (q * (q + 1) >> 1)
    return result - root * (root * (root + 1) // 2)


def main():
    it = iter(sys.stdin.buffer.read().split())
    next(it)
    print("\n".join(str(total(int(r)) - total(int(l) - 1)) for l, r in zip(it, it)))


main()
