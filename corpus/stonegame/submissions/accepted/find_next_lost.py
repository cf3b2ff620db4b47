# bytearray.find jumps from one lost heap to the next
import sys


def lost_heaps(n, moves):
    top = max(moves)
    won = bytearray(n + top + 2)
    heap = 0
    while heap <= n:
        yield heap
        for s in moves:
            won[heap + s] = 1
        heap = won.find(0, heap + 1)


def main():
    out = []
    for line in sys.stdin.buffer.read().splitlines()[1:]:
        n, _, *moves = map(int, line.split())
        lost = list(lost_heaps(n, list(set(moves))))
        out.append(f"{len(lost)} {lost[-1]} {'second' if lost[-1] == n else 'first'}")
    print("\n".join(out))


main()
