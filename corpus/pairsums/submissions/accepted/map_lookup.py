# every weight looks up its partner's count: sum(map(...)) over all n
import sys
from collections import defaultdict

lines = sys.stdin.read().split("\n")
n, q = map(int, lines[0].split())
weights = list(map(int, lines[1 : n + 1]))
count = defaultdict(int)
for w in weights:
    count[w] += 1
table = dict(count)

for line in lines[n + 1 : n + 1 + q]:
    kind, x = line[0], int(line[2:])
    if kind == "s":
        ordered = sum(table.get(x - w, 0) for w in weights)
        same = count.get(x // 2, 0) if x % 2 == 0 else 0
        print((ordered - same) // 2)
    else:
        ordered = sum(table.get(w + x, 0) for w in weights)
        print(ordered if x else (ordered - n) // 2)
