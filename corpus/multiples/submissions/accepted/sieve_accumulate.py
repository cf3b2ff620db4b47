# one list sieve for each team with slice assignment, prefix sums by accumulate
import sys
from itertools import accumulate


def main():
    lines = iter(sys.stdin)
    next(lines)
    for first in lines:
        divisors = set(map(int, first.split()[1:]))
        lengths = list(map(int, next(lines).split()))[1:]
        top = max(lengths) + 1
        value = [0] * top
        for d in divisors:
            value[d::d] = range(d, top, d)
        prefix = list(accumulate(value))
        print(*[prefix[n] for n in lengths])


main()
