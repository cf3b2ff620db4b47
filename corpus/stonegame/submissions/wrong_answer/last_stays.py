# table from below that never lets a move take the last pebble
for _ in range(int(input())):
    n, k, *moves = map(int, input().split())
    win = [False] * (n + 1)
    for heap in range(n + 1):
        win[heap] = any(not win[heap - s] for s in moves if s < heap)
    lost = [h for h in range(n + 1) if not win[h]]
    print(len(lost), lost[-1], "first" if win[n] else "second")
