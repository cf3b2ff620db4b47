# depth-first fill by recursion, relaxes minutes; too deep on long paths
import sys

rows = sys.stdin.read().split()[2:]
best = {}


def burn(i, j, t):
    if not (0 <= i < len(rows) and 0 <= j < len(rows[0])) or rows[i][j] == "#":
        return
    if best.get((i, j), 10**9) <= t:
        return
    best[i, j] = t
    burn(i, j + 1, t + 1)
    burn(i + 1, j, t + 1)
    burn(i, j - 1, t + 1)
    burn(i - 1, j, t + 1)


for i, row in enumerate(rows):
    for j, ch in enumerate(row):
        if ch == "F":
            burn(i, j, 0)
print(max(best.values()), sum(len(row) - row.count("#") for row in rows) - len(best))
