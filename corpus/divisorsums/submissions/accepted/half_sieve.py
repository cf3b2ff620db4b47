# pairs of divisors d <= e: a sieve that stops at the square root
import sys
from itertools import accumulate
from math import isqrt


def main():
    nums = list(map(int, sys.stdin.buffer.read().split()))[1:]
    n = max(nums)
    sigma = [0] * (n + 1)
    for d in range(1, isqrt(n) + 1):
        sigma[d * d] += d
        e = d + 1
        for k in range(d * e, n + 1, d):
            sigma[k] += d + e
            e += 1
    pre = list(accumulate(sigma))
    for i in range(0, len(nums), 2):
        print(pre[nums[i + 1]] - pre[nums[i] - 1])


main()
