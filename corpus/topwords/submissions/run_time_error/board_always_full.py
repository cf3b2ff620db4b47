# takes it for granted that there are k words
import re
import sys
from collections import Counter

lines = sys.stdin.read().lower().splitlines()
k = int(lines[0].split()[1])
count = Counter()
for line in lines[1:]:
    if line == "#":
        ranking = sorted(count.items(), key=lambda item: (-item[1], item[0]))
        print(*[f"{ranking[i][0]}:{ranking[i][1]}" for i in range(k)])
    else:
        count.update(re.findall("[a-z]+", line))
