# groupby the sorted weights, one binary search for every different number
from bisect import bisect_left
from itertools import groupby

n, q = map(int, input().split())
weights = [int(input()) for _ in range(n)]
weights.sort()
values, counts = [], []
for value, group in groupby(weights):
    values.append(value)
    counts.append(len(list(group)))
values.append(10**9)
counts.append(0)


def number_of(value):
    i = bisect_left(values, value)
    return counts[i] if values[i] == value else 0


for _ in range(q):
    kind, x = input().split()
    x = int(x)
    total = 0
    for v, c in zip(values[:-1], counts):
        if kind == "d":
            total += c * number_of(v + x) if x else c * (c - 1) // 2
        elif 2 * v < x:
            total += c * number_of(x - v)
        elif 2 * v == x:
            total += c * (c - 1) // 2
    print(total)
