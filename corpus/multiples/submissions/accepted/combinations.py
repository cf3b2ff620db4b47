# inclusion-exclusion with itertools.combinations, products divided by gcd step by step
import sys
from itertools import combinations
from functools import reduce
from math import gcd


def steps(ds):
    for size in range(1, len(ds) + 1):
        for chosen in combinations(ds, size):
            yield (-1) ** (size + 1), reduce(lambda x, y: x * y // gcd(x, y), chosen)


def solve(ds, ns):
    terms = list(steps(ds))
    for n in ns:
        s = 0
        for sign, step in terms:
            k = n // step
            s += sign * step * k * (k + 1) // 2
        yield s


tokens = iter(map(int, sys.stdin.read().split()))
for _ in range(next(tokens)):
    ds = [next(tokens) for _ in range(next(tokens))]
    ns = [next(tokens) for _ in range(next(tokens))]
    print(*solve(ds, ns))
