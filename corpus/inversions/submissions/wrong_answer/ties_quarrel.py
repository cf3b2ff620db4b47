# insort from the left side: equal tickets are counted too
from bisect import bisect_left

n = int(input())
seen = []
c = 0
for t in map(int, input().split()):
    at = bisect_left(seen, t)
    c += len(seen) - at
    seen.insert(at, t)
print(c)
