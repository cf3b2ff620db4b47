# most_common leaves equal counts in the order of first appearance
import re
import sys
from collections import Counter

lines = sys.stdin.read().lower().split("\n")
k = int(lines[0].split()[1])
count = Counter()
for line in lines[1:]:
    if line == "#":
        print(" ".join(f"{w}:{c}" for w, c in count.most_common(k)) or "-")
    else:
        count.update(re.findall("[a-z]+", line))
