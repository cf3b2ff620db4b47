# keeps all words in one sorted list and measures the runs of equal words
import re
import sys
from itertools import groupby

total, k = map(int, sys.stdin.readline().split())
spoken = []
for line in sys.stdin:
    if line.strip() == "#":
        spoken.sort()
        runs = [(-len(list(group)), word) for word, group in groupby(spoken)]
        runs.sort()
        print(" ".join(f"{word}:{-size}" for size, word in runs[:k]) or "-")
    else:
        spoken.extend(re.findall("[a-z]+", line.lower()))
