# count all numbers, meet the partners by intersecting key sets
import sys
from collections import Counter

rest = sys.stdin.read().split()
n, q = int(rest[0]), int(rest[1])
count = Counter(map(int, rest[2 : n + 2]))
keys = set(count)

for i in range(n + 2, n + 2 + 2 * q, 2):
    x = int(rest[i + 1])
    if rest[i] == "s":
        twice = 0
        for v in keys.intersection([x - v for v in keys]):
            twice += count[v] * (count[x - v] - (v + v == x))
        print(twice // 2)
    elif x:
        print(sum(count[v] * count[v + x] for v in keys.intersection([v - x for v in keys])))
    else:
        print(sum(c * (c - 1) // 2 for c in count.values()))
