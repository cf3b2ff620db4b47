# forgets that upper and lower case are the same word
import re

total, k = map(int, input().split())
count = {}
for _ in range(total):
    line = input()
    if line == "#":
        best = sorted(count.items(), key=lambda item: (-item[1], item[0]))[:k]
        print(" ".join(f"{w}:{c}" for w, c in best) or "-")
    else:
        for word in re.findall("[A-Za-z]+", line):
            count[word] = count.get(word, 0) + 1
