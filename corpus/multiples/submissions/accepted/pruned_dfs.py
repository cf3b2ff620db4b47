# inclusion-exclusion as a depth-first walk for every query, cut where the multiple passes the length
import sys
from math import lcm


def walk(ds, start, step, sign, n):
    s = 0
    for i in range(start, len(ds)):
        nxt = lcm(step, ds[i])
        if nxt <= n:
            k = n // nxt
            s += sign * (nxt * k * (k + 1) >> 1)
            s += walk(ds, i + 1, nxt, -sign, n)
    return s


def main():
    read = sys.stdin.readline
    for _ in range(int(read())):
        ds = sorted(set(map(int, read().split()[1:])), reverse=True)
        print(*(walk(ds, 0, 1, 1, int(t)) for t in read().split()[1:]))


main()
