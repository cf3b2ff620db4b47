# heap of single integers that hold value and index, so that tuples are never compared
from heapq import heapify, heappop, heapreplace, heappush

n, _ = map(int, input().split())
SHIFT = 17
LOW = (1 << SHIFT) - 1
code = [(-int(t) << SHIFT) | i for i, t in enumerate(input().split())]
for k in map(int, input().split()):
    heap = code[:k]
    heapify(heap)
    tops = [heap[0]]
    for i in range(k, n):
        gone = i - k
        if heap[0] & LOW <= gone:
            heapreplace(heap, code[i])
            while heap[0] & LOW <= gone:
                heappop(heap)
        else:
            heappush(heap, code[i])
        tops.append(heap[0])
    print(-sum(t >> SHIFT for t in tops))
