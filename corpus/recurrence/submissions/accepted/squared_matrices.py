# square the matrix 20 times in advance, apply the ones that n's bits name
import sys

data = list(map(int, sys.stdin.read().split()))
a, b, m, x0, x1 = data[:5]
powers = [(a, b, 1, 0)]
for _ in range(20):
    p, q, r, s = powers[-1]
    powers.append(((p * p + q * r) % m, (p * q + q * s) % m, (r * p + s * r) % m, (r * q + s * s) % m))

results = []
for n in data[6:]:
    high, low = x1, x0
    for p, q, r, s in powers:
        if n & 1:
            high, low = (p * high + q * low) % m, (r * high + s * low) % m
        n >>= 1
        if not n:
            break
    results.append(low)
print("\n".join(map(str, results)))
