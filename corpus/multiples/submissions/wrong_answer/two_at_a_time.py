# tempting shortcut: singles minus pairs, deeper overlaps left out
import sys
from math import lcm

lines = sys.stdin.read().split("\n")
for i in range(1, 2 * int(lines[0]), 2):
    ds = list(set(map(int, lines[i].split()[1:])))
    pairs = [lcm(a, b) for j, a in enumerate(ds) for b in ds[:j]]
    row = []
    for n in map(int, lines[i + 1].split()[1:]):
        s = sum(d * (n // d) * (n // d + 1) for d in ds) - sum(p * (n // p) * (n // p + 1) for p in pairs)
        row.append(s // 2)
    print(*row)
