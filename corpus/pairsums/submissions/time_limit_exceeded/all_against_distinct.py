# meets every weight with every different number and ticks off the questions
import sys
from collections import Counter

lines = sys.stdin.readlines()
n, q = map(int, lines[0].split())
a = [int(line) for line in lines[1 : n + 1]]
questions = [line.split() for line in lines[n + 1 :]]
sums = {int(x): 0 for kind, x in questions if kind == "s"}
differences = {int(x): 0 for kind, x in questions if kind == "d"}
count = Counter(a)
for v in a:
    for w in count:
        if v + w in sums:
            sums[v + w] += count[w]
        if abs(v - w) in differences:
            differences[abs(v - w)] += count[w]
for kind, x in questions:
    x = int(x)
    if kind == "s":
        print((sums[x] - sum(v + v == x for v in a)) // 2)
    else:
        print((differences[x] - (0 if x else n)) // 2)
