# both players always take as much as they may
for _ in range(int(input())):
    n, k, *moves = map(int, input().split())
    moves.sort(reverse=True)
    win = [False] * (n + 1)
    for heap in range(n + 1):
        for s in moves:
            if s <= heap:
                win[heap] = not win[heap - s]
                break
    lost = [h for h in range(n + 1) if not win[h]]
    print(len(lost), lost[-1], "first" if win[n] else "second")
