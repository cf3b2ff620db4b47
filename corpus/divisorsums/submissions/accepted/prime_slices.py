# multiplies the factor of each prime power into slices of the table
import sys
from itertools import accumulate, cycle
from operator import mul


def main():
    nums = list(map(int, sys.stdin.buffer.read().split()))
    n = max(nums[1:])
    sigma = [1] * (n + 1)
    sigma[0] = 0
    for p in range(2, n + 1):
        if sigma[p] != 1:
            continue
        if p * p > n:
            factor = p + 1
            sigma[p::p] = [s * factor for s in sigma[p::p]]
            continue
        count = n // p
        terms = [1 + p] * count
        power = p * p
        while power <= n:
            step = power // p
            terms[step - 1 :: step] = [t + power for t in terms[step - 1 :: step]]
            power *= p
        sigma[p::p] = map(mul, sigma[p::p], terms)
    pre = list(accumulate(sigma))
    out = [pre[r] - pre[l - 1] for l, r in zip(nums[1::2], nums[2::2])]
    print(*out, sep="\n")


main()
