# breadth-first search, deque of pairs, matrix of minutes
import sys
from collections import deque


def main():
    lines = sys.stdin.read().splitlines()
    r, c = map(int, lines[0].split())
    dist = []
    q = deque()
    for i, line in enumerate(lines[1 : r + 1]):
        row = []
        for j, ch in enumerate(line):
            if ch == "F":
                row.append(0)
                q.append((i, j))
            else:
                row.append(-1 if ch == "." else -2)
        dist.append(row)
    last = 0
    while q:
        i, j = q.popleft()
        last = dist[i][j]
        nxt = last + 1
        if i > 0 and dist[i - 1][j] == -1:
            dist[i - 1][j] = nxt
            q.append((i - 1, j))
        if i + 1 < r and dist[i + 1][j] == -1:
            dist[i + 1][j] = nxt
            q.append((i + 1, j))
        if j > 0 and dist[i][j - 1] == -1:
            dist[i][j - 1] = nxt
            q.append((i, j - 1))
        if j + 1 < c and dist[i][j + 1] == -1:
            dist[i][j + 1] = nxt
            q.append((i, j + 1))
    print(last, sum(row.count(-1) for row in dist))


main()
