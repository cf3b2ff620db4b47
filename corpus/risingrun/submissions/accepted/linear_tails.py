# smallest last height for each length, found by a scan from the long end
import sys

for line in sys.stdin.readlines()[1:]:
    n, v, a, b, m = map(int, line.split())
    tails = [-1]
    for _ in range(n):
        k = len(tails)
        while tails[k - 1] >= v:
            k -= 1
        if k == len(tails):
            tails.append(v)
        else:
            tails[k] = v
        v = (a * v + b) % m
    print(len(tails) - 1)
