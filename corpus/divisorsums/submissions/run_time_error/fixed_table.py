# harmonic sieve with a table of fixed size
import sys

SIZE = 10_000
s = [0] * SIZE
for d in range(1, SIZE):
    for k in range(d, SIZE, d):
        s[k] += d
for k in range(1, SIZE):
    s[k] += s[k - 1]
for line in sys.stdin.read().splitlines()[1:]:
    l, r = map(int, line.split())
    print(s[r] - s[l - 1])
