# Dijkstra with a heap of (minute, row, column) and a dictionary of minutes
import heapq

r, c = map(int, input().split())
grid = {}
queue = []
minute = {}
for i in range(r):
    for j, ch in enumerate(input()):
        if ch != "#":
            grid[i, j] = ch
        if ch == "F":
            minute[i, j] = 0
            heapq.heappush(queue, (0, i, j))
last = 0
while queue:
    d, i, j = heapq.heappop(queue)
    if d > minute[i, j]:
        continue
    last = d
    for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        place = (i + di, j + dj)
        if place in grid and d + 1 < minute.get(place, 10**9):
            minute[place] = d + 1
            heapq.heappush(queue, (d + 1, *place))
print(last, len(grid) - len(minute))
