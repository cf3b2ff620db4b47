# peel off the running minima again and again; the number of layers is the answer
import sys


def layers(xs):
    count = 0
    while xs:
        rest = []
        low = xs[0]
        for x in xs:
            if x <= low:
                low = x
            else:
                rest.append(x)
        xs = rest
        count += 1
    return count


data = list(map(int, sys.stdin.read().split()))
out = []
for k in range(1, len(data), 5):
    n, s, a, b, m = data[k : k + 5]
    xs = []
    for _ in range(n):
        xs.append(s)
        s = (a * s + b) % m
    out.append(layers(xs))
print(*out, sep="\n")
