# square-root buckets: bucket isqrt(t) holds ticket t (there is no root below zero)
import sys
from math import isqrt

data = list(map(int, sys.stdin.read().split()))
top = isqrt(max(data[1:]))
single = [0] * (top + 1) ** 2
blocks = [0] * (top + 1)
c = 0
for t in data[1:]:
    b = isqrt(t)
    c += sum(blocks[b + 1:]) + sum(single[t + 1:(b + 1) ** 2])
    single[t] += 1
    blocks[b] += 1
print(c)
