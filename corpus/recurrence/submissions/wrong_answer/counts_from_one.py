# takes x_0 for the number at second 1
import sys

data = list(map(int, sys.stdin.read().split()))
a, b, m, x0, x1 = data[:5]
x = [x0, x0, x1]
for _ in range(max(data[6:])):
    x.append((a * x[-1] + b * x[-2]) % m)
for n in data[6:]:
    print(x[n])
