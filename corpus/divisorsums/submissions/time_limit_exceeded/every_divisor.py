# for every question: each possible divisor and all its multiples in the range
import sys


def answer(l, r):
    total = 0
    for d in range(1, r + 1):
        first = (l + d - 1) // d * d
        for _ in range(first, r + 1, d):
            total += d
    return total


for line in sys.stdin.readlines()[1:]:
    print(answer(*map(int, line.split())))
