# a list of (-count, word) that stays sorted: bisect out, insort back in
import sys
from bisect import bisect_left, insort

order = []
count = {}


def add(word):
    c = count.get(word, 0)
    if c:
        del order[bisect_left(order, (-c, word))]
    count[word] = c + 1
    insort(order, (-c - 1, word))


def show(k):
    print(" ".join(f"{w}:{-c}" for c, w in order[:k]) if order else "-")


lines = sys.stdin.read().split("\n")
size = int(lines[0].split()[1])
letters = "abcdefghijklmnopqrstuvwxyz"
table = {code: chr(code).lower() if chr(code).lower() in letters else " " for code in range(128)}
for line in lines[1:]:
    if line == "#":
        show(size)
    else:
        for word in line.translate(table).split():
            add(word)
