# chunks of 1000: bit masks inside a chunk, mapped bisect against the sorted past
import sys
from bisect import bisect_right
from itertools import repeat

SIZE = 1000
BIT = [1 << i for i in range(SIZE)]


def main():
    numbers = list(map(int, sys.stdin.buffer.read().split()))
    tickets = numbers[1:]
    past = []
    total = 0
    for at in range(0, len(tickets), SIZE):
        chunk = tickets[at:at + SIZE]
        total += len(past) * len(chunk) - sum(map(bisect_right, repeat(past), sorted(chunk)))
        mask = 0
        for i in sorted(range(len(chunk)), key=chunk.__getitem__):
            total += (mask >> i).bit_count()
            mask |= BIT[i]
        past += chunk
        past.sort()
    print(total)


main()
