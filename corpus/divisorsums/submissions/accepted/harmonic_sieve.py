# harmonic sieve: every d adds itself to its multiples, then prefix sums
import sys

lines = sys.stdin.read().splitlines()
asks = [list(map(int, s.split())) for s in lines[1:]]
n = max(r for l, r in asks)
s = [0] * (n + 1)
for d in range(1, n + 1):
    for k in range(d, n + 1, d):
        s[k] += d
for k in range(1, n + 1):
    s[k] += s[k - 1]
for l, r in asks:
    print(s[r] - s[l - 1])
