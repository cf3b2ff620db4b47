# loops over coins inside the price: counts orders too
import sys

data = list(map(int, sys.stdin.read().split()))
k = data[0]
coins, prices = data[2 : 2 + k], data[2 + k :]
ways = [1]
for p in range(1, max(prices) + 1):
    ways.append(sum(ways[p - c] for c in coins if c <= p) & (1 << 63) - 1)
for p in prices:
    print(ways[p])
