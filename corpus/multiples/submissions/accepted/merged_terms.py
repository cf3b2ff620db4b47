# divisors reduced to those that divide no other, terms with equal multiples merged, big ones dropped
import sys
from math import lcm


def main():
    lines = sys.stdin.read().split("\n")
    out = []
    for i in range(1, 2 * int(lines[0]), 2):
        ds = sorted(set(map(int, lines[i].split()[1:])))
        ns = list(map(int, lines[i + 1].split()[1:]))
        top = max(ns)
        base = []
        for d in ds:
            if all(d % b for b in base):
                base.append(d)
        terms = {1: 0}
        for d in base:
            new = dict(terms)
            new[d] = new.get(d, 0) + 1
            for step, sign in terms.items():
                both = lcm(step, d)
                if both <= top and sign:
                    new[both] = new.get(both, 0) - sign
            terms = new
        pairs = [(step, sign * step) for step, sign in terms.items() if sign]
        row = []
        for n in ns:
            twice = 0
            for step, weight in pairs:
                k = n // step
                twice += weight * (k * k + k)
            row.append(twice // 2)
        out.append(" ".join(map(str, row)))
    print("\n".join(out))


main()
