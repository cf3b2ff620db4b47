# marks the multiples of each coin without looking whether the coin fits the table
import sys

data = list(map(int, sys.stdin.read().split()))
k = data[0]
coins, prices = data[2 : 2 + k], data[2 + k :]
ways = [0] * (max(prices) + 1)
ways[0] = 1
for c in coins:
    ways[c] += 1
    for p in range(c + 1, len(ways)):
        ways[p] += ways[p - c]
for p in prices:
    print(ways[p])
