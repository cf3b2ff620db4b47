# queries in rising order, a heap of the next multiple of each divisor moves the street forward
import heapq

for _ in range(int(input())):
    ds = sorted(set(map(int, input().split()[1:])))
    ns = list(map(int, input().split()[1:]))
    heap = [(d, d) for d in ds]
    last = 0
    total = 0
    found = {}
    for n in sorted(set(ns)):
        while heap[0][0] <= n:
            x, d = heap[0]
            if x != last:
                total += x
                last = x
            heapq.heapreplace(heap, (x + d, d))
        found[n] = total
    print(*[found[n] for n in ns])
