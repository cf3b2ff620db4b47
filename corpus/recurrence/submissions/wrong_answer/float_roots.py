# closed form with floating point roots, exact only while numbers are small
import sys
from cmath import sqrt

data = list(map(int, sys.stdin.read().split()))
a, b, m, x0, x1 = data[:5]
root = sqrt(a * a + 4 * b)
s, t = (a + root) / 2, (a - root) / 2
for n in data[6:]:
    try:
        p = (x1 - t * x0) / (s - t)
        print(round((p * s**n + (x0 - p) * t**n).real) % m)
    except (OverflowError, ZeroDivisionError, ValueError):
        print(0)
