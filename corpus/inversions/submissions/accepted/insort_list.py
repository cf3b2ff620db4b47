# grow a sorted list with bisect, count what stands to the right of the newcomer
from bisect import bisect_right

n = int(input())
seen = []
quarrels = 0
for t in map(int, input().split()):
    at = bisect_right(seen, t)
    quarrels += len(seen) - at
    seen.insert(at, t)
print(quarrels)
