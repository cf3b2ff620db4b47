# patience piles with bisect_right: allows equal heights
import sys
from bisect import bisect_right

for line in sys.stdin.read().splitlines()[1:]:
    n, s, a, b, m = map(int, line.split())
    piles = []
    for _ in range(n):
        k = bisect_right(piles, s)
        piles[k : k + 1] = [s]
        s = (a * s + b) % m
    print(len(piles))
