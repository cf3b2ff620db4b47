# breadth-first search with complex numbers as cells and a dictionary of grass
import sys

_, *lines = sys.stdin.read().splitlines()
grass = {complex(x, y): ch for y, row in enumerate(lines) for x, ch in enumerate(row) if ch in ".F"}
front = [p for p, ch in grass.items() if ch == "F"]
for p in front:
    del grass[p]
minutes = -1 if front else 0
while front:
    minutes += 1
    following = []
    for p in front:
        for d in (1, -1, 1j, -1j):
            if grass.pop(p + d, None):
                following.append(p + d)
    front = following
print(minutes, len(grass))
