# walks the row downwards: every coin is used once at most
import sys

data = list(map(int, sys.stdin.read().split()))
k = data[0]
coins, prices = data[2 : 2 + k], data[2 + k :]
ways = [1] + [0] * max(prices)
for c in coins:
    for p in range(max(prices), c - 1, -1):
        ways[p] += ways[p - c]
for p in prices:
    print(ways[p])
