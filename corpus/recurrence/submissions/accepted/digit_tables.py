# tables of matrix powers for each base-64 digit of n
import sys

BASE = 64


def mul(p, q, m):
    a, b, c, d = p
    e, f, g, h = q
    return (a * e + b * g) % m, (a * f + b * h) % m, (c * e + d * g) % m, (c * f + d * h) % m


def main():
    lines = sys.stdin.read().splitlines()
    a, b, m, x0, x1 = map(int, lines[0].split())
    step = (a, b, 1 % m, 0)
    tables = []
    for _ in range(4):
        row = [(1, 0, 0, 1)]
        for _ in range(BASE):
            row.append(mul(row[-1], step, m))
        step = row[BASE]
        tables.append(row)
    for line in lines[2:]:
        n = int(line)
        high, low = x1, x0
        for row in tables:
            if not n:
                break
            p, q, r, s = row[n % BASE]
            high, low = (p * high + q * low) % m, (r * high + s * low) % m
            n //= BASE
        print(low % m)


main()
