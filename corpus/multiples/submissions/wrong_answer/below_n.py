# sieve that leaves out the last house
from itertools import accumulate

for _ in range(int(input())):
    ds = list(map(int, input().split()))[1:]
    ns = list(map(int, input().split()))[1:]
    value = [0] * (max(ns) + 1)
    for d in ds:
        value[d::d] = range(d, max(ns) + 1, d)
    sums = list(accumulate(value))
    print(*[sums[n - 1] for n in ns])
