# factors every number by trial division with the primes up to its root
import sys


def primes_upto(n):
    sieve = bytearray([1]) * (n + 1)
    found = []
    for p in range(2, n + 1):
        if sieve[p]:
            found.append(p)
            for k in range(p * p, n + 1, p):
                sieve[k] = 0
    return found


def sigma(k, primes):
    result = 1
    for p in primes:
        if p * p > k:
            break
        if k % p == 0:
            term = 1
            while k % p == 0:
                k //= p
                term = term * p + 1
            result *= term
    return result * (k + 1) if k > 1 else result


def main():
    data = list(map(int, sys.stdin.read().split()))
    asks = list(zip(data[1::2], data[2::2]))
    top = max(data[1:])
    primes = primes_upto(int(top**0.5) + 1)
    prefix = [0]
    for k in range(1, top + 1):
        prefix.append(prefix[-1] + sigma(k, primes))
    for l, r in asks:
        print(prefix[r] - prefix[l - 1])


main()
