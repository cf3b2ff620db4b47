# table for all coins but the largest two, these are enumerated for each price
import sys


def main():
    data = list(map(int, sys.stdin.read().split()))
    k = data[0]
    coins, prices = data[2 : 2 + k], data[2 + k :]
    large = coins[max(1, k - 2) :]
    ways = [1] * (max(prices) + 1)
    for c in coins[1 : max(1, k - 2)]:
        for p in range(c, len(ways)):
            ways[p] += ways[p - c]
    while len(large) < 2:
        large.append(10**9)
    a, b = large
    for price in prices:
        print(sum(sum(ways[rest::-a]) for rest in range(price, -1, -b)))


main()
