# one set of words per count, kept up to date with every single word
import re
import sys
from collections import defaultdict


def main():
    total, k = map(int, sys.stdin.readline().split())
    count = defaultdict(int)
    bucket = defaultdict(set)
    top = 0
    for line in sys.stdin:
        if line[0] != "#":
            for word in re.findall("[a-z]+", line.lower()):
                c = count[word]
                bucket[c].discard(word)
                c += 1
                count[word] = c
                bucket[c].add(word)
                if c > top:
                    top = c
            continue
        board = []
        c = top
        while c and len(board) < k:
            board += [f"{w}:{c}" for w in sorted(bucket[c])]
            c -= 1
        print(*(board[:k] or ["-"]))


main()
