# a street of zeros for every length, each divisor writes its multiples by slice, sum at the end
import sys


def lit_sum(ds, n):
    street = [0] * (n + 1)
    for d in ds:
        street[d::d] = range(d, n + 1, d)
    return sum(street)


rows = sys.stdin.read().splitlines()
for i in range(1, len(rows), 2):
    ds = [int(t) for t in rows[i].split()][1:]
    print(*(lit_sum(ds, int(t)) for t in rows[i + 1].split()[1:]))
