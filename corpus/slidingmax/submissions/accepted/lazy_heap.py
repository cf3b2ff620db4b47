# heap of (-value, index) with lazy deletion
import heapq
import sys


def solve(values, k):
    heap = []
    answer = 0
    for i, v in enumerate(values):
        heapq.heappush(heap, (-v, i))
        if i >= k - 1:
            while heap[0][1] <= i - k:
                heapq.heappop(heap)
            answer -= heap[0][0]
    return answer


lines = sys.stdin.read().split("\n")
values = list(map(int, lines[1].split()))
for token in lines[2].split():
    print(solve(values, int(token)))
