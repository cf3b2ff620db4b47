# dict of counts, all words sorted with a key for every board
import re

total, k = map(int, input().split())
counts = {}
for _ in range(total):
    line = input()
    if line == "#":
        ranking = sorted(counts, key=lambda word: (-counts[word], word))
        print(" ".join(f"{word}:{counts[word]}" for word in ranking[:k]) or "-")
        continue
    for word in re.split("[^a-z]+", line.lower()):
        if word:
            counts[word] = counts.get(word, 0) + 1
