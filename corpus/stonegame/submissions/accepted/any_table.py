# table from below with any()
for _ in range(int(input())):
    n, k, *moves = map(int, input().split())
    win = [False] * (n + 1)
    for heap in range(n + 1):
        win[heap] = any(heap >= s and not win[heap - s] for s in moves)
    lost = [heap for heap in range(n + 1) if not win[heap]]
    print(len(lost), lost[-1], "first" if win[n] else "second")
