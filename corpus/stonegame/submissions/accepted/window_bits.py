# the recent heaps as bits of one integer: a heap is lost when no move meets a lost one
for _ in range(int(input())):
    n, k, *moves = map(int, input().split())
    reach = 0
    for s in moves:
        reach |= 1 << s - 1
    keep = (1 << max(moves)) - 1
    recent = 0
    count = last = 0
    for heap in range(n + 1):
        if recent & reach:
            recent = recent << 1 & keep
        else:
            recent = (recent << 1 | 1) & keep
            count += 1
            last = heap
    print(count, last, "second" if last == n else "first")
