# t^n modulo t^2 - a t - b by repeated doubling, for every question
from sys import stdin


def power(n, a, b, m):
    """Coefficients (p, r) with t^n = p t + r."""
    p, r = 0, 1
    for bit in bin(n)[2:]:
        square = p * p
        p, r = (a * square + 2 * p * r) % m, (b * square + r * r) % m
        if bit == "1":
            p, r = (a * p + r) % m, b * p % m
    return p, r


def main():
    a, b, m, x0, x1 = map(int, stdin.readline().split())
    for _ in range(int(stdin.readline())):
        p, r = power(int(stdin.readline()), a, b, m)
        print((p * x1 + r * x0) % m)


main()
