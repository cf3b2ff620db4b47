# period found by remembering every window of max(move) results as an integer
import sys


def game(n, moves):
    top = max(moves)
    reach = sum(1 << s - 1 for s in set(moves))
    keep = (1 << top) - 1
    window = 0
    seen = {}
    lost = []
    for heap in range(n + 1):
        if window in seen and heap >= top:
            start = seen[window]
            size = heap - start
            break
        seen[window] = heap
        if window & reach:
            window = window << 1 & keep
        else:
            window = (window << 1 | 1) & keep
            lost.append(heap)
    else:
        return len(lost), lost[-1]
    cycle = [h for h in lost if h >= start]
    whole, rest = divmod(n + 1 - start, size)
    part = [h for h in cycle if h < start + rest]
    count = len(lost) - len(cycle) + whole * len(cycle) + len(part)
    if part:
        return count, part[-1] + whole * size
    return count, cycle[-1] + (whole - 1) * size


def main():
    read = sys.stdin.readline
    for _ in range(int(read())):
        n, _, *moves = map(int, read().split())
        count, last = game(n, moves)
        print(count, last, "second" if last == n else "first")


main()
