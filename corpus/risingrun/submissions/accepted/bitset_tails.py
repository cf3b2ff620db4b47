# the set of pile tops as the bits of one integer: set a bit, clear the next one above
import sys


def main():
    rows = [list(map(int, r.split())) for r in sys.stdin.read().splitlines()[1:]]
    for n, s, a, b, m in rows:
        xs = []
        for _ in range(n):
            xs.append(s)
            s = (a * s + b) % m
        rank = {x: i for i, x in enumerate(sorted(set(xs)))}
        tops = 0
        for x in xs:
            r = rank[x]
            at_least = tops >> r
            tops ^= (at_least & -at_least ^ 1) << r
        print(tops.bit_count())


main()
