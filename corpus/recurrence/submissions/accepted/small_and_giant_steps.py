# about sqrt(n) small steps and sqrt(n) giant steps, then one product a question
import sys
from math import isqrt


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    a, b, m, x0, x1 = data[:5]
    asked = data[6:]
    width = isqrt(max(asked)) + 1

    # x_(s+t) = u[t] * x_(s+1) + v[t] * x_s
    u, v = [0, 1 % m], [1 % m, 0]
    for _ in range(width):
        u.append((a * u[-1] + b * u[-2]) % m)
        v.append((a * v[-1] + b * v[-2]) % m)

    low, high = [x0], [x1]
    for _ in range(width):
        p, q = low[-1], high[-1]
        low.append((u[width] * q + v[width] * p) % m)
        high.append((u[width + 1] * q + v[width + 1] * p) % m)

    out = []
    for n in asked:
        g, t = divmod(n, width)
        out.append((u[t] * high[g] + v[t] * low[g]) % m)
    print("\n".join(map(str, out)))


main()
