# tempting shortcut: the results repeat with period min + max
import sys

for line in sys.stdin.read().splitlines()[1:]:
    n, k, *moves = map(int, line.split())
    size = min(moves) + max(moves)
    won = bytearray(size + max(moves) + 1)
    for heap in range(size):
        if not won[heap]:
            for s in moves:
                won[heap + s] = 1
    cycle = [h for h in range(size) if not won[h]]
    whole, rest = divmod(n + 1, size)
    part = [h for h in cycle if h < rest]
    last = part[-1] + whole * size if part else cycle[-1] + (whole - 1) * size
    print(whole * len(cycle) + len(part), last, "second" if last == n else "first")
