# counts a weight together with itself and halves what is left
import sys
from collections import Counter

lines = sys.stdin.read().splitlines()
n, q = map(int, lines[0].split())
count = Counter(map(int, lines[1 : n + 1]))
for line in lines[n + 1 :]:
    kind, x = line.split()
    x = int(x)
    if kind == "s":
        print(sum(c * count.get(x - v, 0) for v, c in count.items()) // 2)
    else:
        print(sum(c * count.get(v + x, 0) for v, c in count.items()))
