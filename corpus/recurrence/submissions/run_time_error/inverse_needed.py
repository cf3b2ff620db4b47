# runs the rule backwards from the largest second, which needs b to be invertible
import sys

data = list(map(int, sys.stdin.read().split()))
a, b, m, x0, x1 = data[:5]
asked = data[6:]
back = pow(b, -1, m)
old, new = x0, x1
for _ in range(max(asked)):
    old, new = new, (a * new + b * old) % m
x = {max(asked): old}
for n in range(max(asked) - 1, -1, -1):
    old, new = back * (new - a * old) % m, old
    x[n] = old
for n in asked:
    print(x[n])
