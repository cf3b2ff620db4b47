# every lost heap marks the heaps above it as won
import sys


def main():
    lines = sys.stdin.read().split("\n")
    for line in lines[1:int(lines[0]) + 1]:
        n, _, *moves = map(int, line.split())
        moves = list(set(moves))
        won = bytearray(n + 1 + max(moves))
        count = 0
        last = 0
        for heap in range(n + 1):
            if won[heap]:
                continue
            count += 1
            last = heap
            for s in moves:
                won[heap + s] = 1
        print(count, last, "first" if won[n] else "second")


main()
