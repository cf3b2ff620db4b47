# asks for the largest count even when nothing is left to choose from
import re
import sys

total, k = map(int, sys.stdin.readline().split())
count = {}
for line in sys.stdin:
    if line.strip() == "#":
        rest = dict(count)
        board = []
        while len(board) < k:
            most = max(rest.values())
            word = min(w for w, c in rest.items() if c == most)
            board.append(f"{word}:{rest.pop(word)}")
        print(" ".join(board))
    else:
        for word in re.findall("[a-z]+", line.lower()):
            count[word] = count.get(word, 0) + 1
