# breadth-first search, deque of tuples, set of visited cells
import sys
from collections import deque


def inside(i, j, r, c):
    return 0 <= i < r and 0 <= j < c


def main():
    r, c = map(int, sys.stdin.readline().split())
    field = [sys.stdin.readline().strip() for _ in range(r)]
    q = deque()
    seen = set()
    grass = 0
    for i in range(r):
        for j in range(c):
            if field[i][j] == "F":
                q.append((i, j, 0))
                seen.add((i, j))
            if field[i][j] != "#":
                grass += 1
    t = 0
    while q:
        i, j, t = q.popleft()
        for di, dj in [(1, 0), (-1, 0), (0, 1), (0, -1)]:
            a, b = i + di, j + dj
            if inside(a, b, r, c) and field[a][b] != "#" and (a, b) not in seen:
                seen.add((a, b))
                q.append((a, b, t + 1))
    print(t, grass - len(seen))


main()
