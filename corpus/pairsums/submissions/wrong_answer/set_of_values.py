# fast: only the set of different numbers, equal weights are forgotten
import sys

data = sys.stdin.buffer.read().split()
n = int(data[0])
have = set(map(int, set(data[2 : n + 2])))
for kind, word in zip(data[n + 2 :: 2], data[n + 3 :: 2]):
    x = int(word)
    if kind == b"s":
        print(len(have & {x - v for v in have}) // 2)
    else:
        print(len(have & {v + x for v in have}))
