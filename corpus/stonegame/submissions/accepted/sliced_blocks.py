# heaps in blocks of the smallest move: all of a block at once from the bits of earlier blocks
import sys


def main():
    for line in sys.stdin.readlines()[1:]:
        n, k, *moves = map(int, line.split())
        moves = sorted(set(moves))
        width = moves[0]
        full = (1 << width) - 1
        top = moves[-1] + width
        keep = (1 << top) - 1
        # bit j of history is the heap that lies j + 1 below the block's end
        history = 0
        count = 0
        last = 0
        shifts = [s - width for s in moves]
        for base in range(0, n + 1, width):
            won = 0
            for s in shifts:
                won |= history >> s
            lost = ~won & full
            if base + width > n + 1:
                lost &= -1 << base + width - n - 1
            if lost:
                count += lost.bit_count()
                last = base + width - (lost & -lost).bit_length()
            history = (history << width | lost) & keep
        print(count, last, "second" if last == n else "first")


main()
