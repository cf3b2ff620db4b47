# jumps between lost heaps on a mask of the future; the mask after a jump is the whole state, so a repeat is a period
import sys


def solve(n, moves):
    mask = 1
    for s in moves:
        mask |= 1 << s
    future, heap = 0, 0
    seen = {}
    at = []
    while heap <= n:
        if future in seen:
            first = seen[future]
            size = heap - at[first]
            cycle = len(at) - first
            whole, rest = divmod(n - heap, size)
            tail = sum(1 for h in at[first:] if h - at[first] <= rest)
            count = len(at) + whole * cycle + tail
            return count, heap + whole * size + at[first + tail - 1] - at[first]
        seen[future] = len(at)
        at.append(heap)
        future |= mask
        step = (~future & future + 1).bit_length() - 1
        future >>= step
        heap += step
    return len(at), at[-1]


def main():
    lines = sys.stdin.buffer.read().splitlines()
    out = []
    for line in lines[1:]:
        n, _, *moves = map(int, line.split())
        count, last = solve(n, moves)
        out.append(f"{count} {last} {'second' if last == n else 'first'}")
    print("\n".join(out))


main()
