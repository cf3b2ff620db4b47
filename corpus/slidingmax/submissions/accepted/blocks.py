# blocks of length k: prefix maxima and suffix maxima inside the blocks, joined by map(max)
import sys
from itertools import accumulate

tokens = sys.stdin.buffer.read().split()
n, q = int(tokens[0]), int(tokens[1])
a = [*map(int, tokens[2:n + 2])]


def answer(k):
    prefix, suffix = [], []
    for at in range(0, n, k):
        block = a[at:at + k]
        prefix += accumulate(block, max)
        back = [*accumulate(reversed(block), max)]
        back.reverse()
        suffix += back
    return sum(map(max, suffix, prefix[k - 1:]))


for token in tokens[n + 2:]:
    print(answer(int(token)))
