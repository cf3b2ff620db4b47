# days kept sorted by run length; the first lower day from the long end decides
import sys
from bisect import insort

it = iter(sys.stdin.read().split())
for _ in range(int(next(it))):
    n, s, a, b, m = (int(next(it)) for _ in range(5))
    ranked = []
    for i in range(n):
        run = 1
        for length, height in reversed(ranked):
            if height < s:
                run = length + 1
                break
        insort(ranked, (run, s))
        s = (a * s + b) % m
    print(ranked[-1][0])
