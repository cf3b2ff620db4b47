# lost heaps mark the heaps above, in a table that ends at n plus 200
for _ in range(int(input())):
    n, k, *moves = map(int, input().split())
    won = bytearray(n + 200)
    lost = []
    for heap in range(n + 1):
        if not won[heap]:
            lost.append(heap)
            for s in moves:
                won[heap + s] = 1
    print(len(lost), lost[-1], "first" if won[n] else "second")
