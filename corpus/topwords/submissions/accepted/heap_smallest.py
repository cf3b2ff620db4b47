# Counter over regex matches, heapq.nsmallest for each board
import heapq
import re
import sys
from collections import Counter

lines = sys.stdin.read().lower().split("\n")
k = int(lines[0].split()[1])
words = re.compile("[a-z]+")
count = Counter()
for line in lines[1:]:
    if line == "#":
        best = heapq.nsmallest(k, count.items(), key=lambda item: (-item[1], item[0]))
        print(" ".join(f"{w}:{c}" for w, c in best) or "-")
    else:
        count.update(words.findall(line))
