# breadth-first search that also spreads over corners
import sys
from collections import deque

r, c, *rows = sys.stdin.read().split()
w = int(c) + 1
f = list("#" * w + "#" + "#".join(rows) + "#" + "#" * w)
q = deque((p, 0) for p, ch in enumerate(f) if ch == "F")
t = 0
while q:
    p, t = q.popleft()
    for d in (1, -1, w, -w, w + 1, w - 1, 1 - w, -1 - w):
        if f[p + d] == ".":
            f[p + d] = "F"
            q.append((p + d, t + 1))
print(t, f.count("."))
