# chunks of the queue: big-integer counting inside a chunk, one walk over the sorted past between chunks
import sys
from bisect import bisect_right


def inside(chunk):
    order = sorted(range(len(chunk)), key=chunk.__getitem__)
    mask = 0
    c = 0
    for i in order:
        c += i - (mask & ((1 << i) - 1)).bit_count()
        mask |= 1 << i
    return c


def main():
    data = sys.stdin.buffer.read().split()
    a = list(map(int, data[1:]))
    size = 3000
    past = []
    total = 0
    for at in range(0, len(a), size):
        chunk = a[at:at + size]
        total += inside(chunk)
        chunk.sort()
        below = 0
        for x in chunk:
            below = bisect_right(past, x, below)
            total += len(past) - below
        past += chunk
        past.sort()
    print(total)


main()
