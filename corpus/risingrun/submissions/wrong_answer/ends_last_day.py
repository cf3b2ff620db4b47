# quadratic table, but reports the run that ends on the last day
import sys


def solve(xs):
    f = [1] * len(xs)
    for i, x in enumerate(xs):
        for j in range(i):
            if xs[j] < x and f[j] >= f[i]:
                f[i] = f[j] + 1
    return f[-1]


for line in sys.stdin.readlines()[1:]:
    n, s, a, b, m = map(int, line.split())
    xs = []
    for _ in range(n):
        xs.append(s)
        s = (a * s + b) % m
    print(solve(xs))
