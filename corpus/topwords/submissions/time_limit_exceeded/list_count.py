# keeps every word that was sent and counts each different one anew for every board
import re
import sys

total, k = map(int, sys.stdin.readline().split())
spoken = []
for line in sys.stdin:
    if line.strip() != "#":
        spoken += re.findall("[a-z]+", line.lower())
        continue
    ranking = sorted((-spoken.count(word), word) for word in set(spoken))
    print(" ".join(f"{word}:{-count}" for count, word in ranking[:k]) or "-")
