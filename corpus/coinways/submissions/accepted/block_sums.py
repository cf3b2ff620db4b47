# adds whole blocks of one coin's length with map and operator.add
import sys
from operator import add

_, coins, prices = (line.split() for line in sys.stdin)
prices = [int(p) for p in prices]
top = max(prices)
ways = [1] * (top + 1)
for coin in sorted(map(int, coins[1:]), reverse=True):
    block = ways[:coin]
    row = block
    for start in range(coin, top + 1, coin):
        block = list(map(add, ways[start : start + coin], block))
        row += block
    ways = row
for p in prices:
    print(ways[p])
