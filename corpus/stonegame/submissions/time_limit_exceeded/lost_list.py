# the lost heaps in a plain list, searched with "in" for every move
for _ in range(int(input())):
    n, k, *moves = map(int, input().split())
    lost = []
    for heap in range(n + 1):
        for s in moves:
            if heap - s in lost:
                break
        else:
            lost.append(heap)
    print(len(lost), lost[-1], "second" if lost[-1] == n else "first")
