# breadth-first search over cell numbers in a padded flat list
from collections import deque

r, c = map(int, input().split())
width = c + 1
stone = 10**9
cells = [stone] * width
queue = deque()
for _ in range(r):
    for ch in input():
        if ch == "F":
            queue.append(len(cells))
            cells.append(0)
        elif ch == ".":
            cells.append(-1)
        else:
            cells.append(stone)
    cells.append(stone)
cells += [stone] * width
last = 0
steps = (1, -1, width, -width)
while queue:
    p = queue.popleft()
    last = cells[p]
    for d in steps:
        if cells[p + d] == -1:
            cells[p + d] = last + 1
            queue.append(p + d)
print(last, cells.count(-1))
