# pairs of divisors, but the root of a square is counted twice
import sys
from math import isqrt

nums = list(map(int, sys.stdin.read().split()))[1:]
n = max(nums)
sigma = [0] * (n + 1)
for d in range(1, isqrt(n) + 1):
    for e in range(d, n // d + 1):
        sigma[d * e] += d + e
for k in range(1, n + 1):
    sigma[k] += sigma[k - 1]
for i in range(0, len(nums), 2):
    print(sigma[nums[i + 1]] - sigma[nums[i] - 1])
