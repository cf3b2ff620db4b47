# smallest prime factor sieve, divisor sums by multiplicativity
import sys
from itertools import accumulate


def sigma_table(n):
    spf = list(range(n + 1))
    i = 2
    while i * i <= n:
        if spf[i] == i:
            for j in range(i * i, n + 1, i):
                if spf[j] == j:
                    spf[j] = i
        i += 1
    sigma = [0, 1]
    for k in range(2, n + 1):
        p = spf[k]
        rest = k // p
        power = 1 + p
        while rest % p == 0:
            rest //= p
            power = power * p + 1
        sigma.append(power * sigma[rest])
    return sigma[: n + 1]


def main():
    rows = [tuple(map(int, line.split())) for line in sys.stdin.readlines()[1:]]
    table = list(accumulate(sigma_table(max(r for _, r in rows))))
    print("\n".join(str(table[r] - table[l - 1]) for l, r in rows))


main()
