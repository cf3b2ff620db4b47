# square-root decomposition: short lists, walk over their lengths
import sys
from math import isqrt


def qth(n, k, q):
    width = 3 * isqrt(n) + 1
    blocks = [list(range(lo, min(lo + width, n + 1))) for lo in range(1, n + 1, width)]
    rank = 0
    left = n
    while True:
        rank = (rank + k - 1) % left
        offset = rank
        for block in blocks:
            size = len(block)
            if offset < size:
                break
            offset -= size
        child = block.pop(offset)
        left -= 1
        if n - left == q:
            return child
        if not block:
            blocks.remove(block)


def main():
    rows = sys.stdin.read().splitlines()
    for row in rows[1:]:
        print(qth(*map(int, row.split())))


if __name__ == "__main__":
    main()
