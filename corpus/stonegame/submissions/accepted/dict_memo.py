# minimax with a dictionary of known heaps and an explicit stack
def wins(start, moves, known):
    stack = [start]
    while stack:
        heap = stack[-1]
        if heap in known:
            stack.pop()
            continue
        unknown = None
        result = False
        for s in moves:
            rest = heap - s
            if rest < 0:
                continue
            if rest not in known:
                unknown = rest
                break
            if not known[rest]:
                result = True
                break
        if unknown is None:
            known[heap] = result
            stack.pop()
        else:
            stack.append(unknown)
    return known[start]


for _ in range(int(input())):
    n, k, *moves = map(int, input().split())
    known = {}
    lost = [heap for heap in range(n + 1) if not wins(heap, moves, known)]
    print(len(lost), lost[-1], "first" if wins(n, moves, known) else "second")
