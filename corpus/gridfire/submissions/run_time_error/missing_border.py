# breadth-first search that forgets the lower and right border of the field
import sys

r, c, *rows = sys.stdin.read().split()
field = [list(row) for row in rows]
level = [(i, j) for i, row in enumerate(field) for j, ch in enumerate(row) if ch == "F"]
t = 0
while level:
    nxt = []
    for i, j in level:
        for a, b in ((i + 1, j), (i, j + 1), (i - 1, j), (i, j - 1)):
            if a >= 0 and b >= 0 and field[a][b] == ".":
                field[a][b] = "F"
                nxt.append((a, b))
    level = nxt
    t += 1
print(max(t - 1, 0), sum(row.count(".") for row in field))
