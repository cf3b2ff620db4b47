# sorts all ends and adds up the stretches between neighbouring ones
import sys
from math import isqrt


def block_sum(lo, hi):
    """Sum of the divisor sums of lo + 1 .. hi."""
    total = 0
    for d in range(1, isqrt(hi) + 1):
        first = max(lo // d + 1, d)
        last = hi // d
        if last < first:
            continue
        count = last - first + 1
        total += d * count + (first + last) * count // 2
        if first == d:
            total -= d
    return total


def main():
    nums = [int(x) for x in sys.stdin.read().split()[1:]]
    ends = sorted({0, *nums[1::2], *(x - 1 for x in nums[::2])})
    acc = {0: 0}
    for lo, hi in zip(ends, ends[1:]):
        acc[hi] = acc[lo] + block_sum(lo, hi)
    for l, r in zip(nums[::2], nums[1::2]):
        print(acc[r] - acc[l - 1])


main()
