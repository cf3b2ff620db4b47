# counts in a dictionary, coin after coin, walking a chain of prices for each remainder
import sys
from collections import defaultdict


def main():
    k, q, *rest = map(int, sys.stdin.read().split())
    coins, prices = rest[:k], rest[k:]
    top = max(prices)
    ways = {0: 1}
    for coin in coins:
        grown = defaultdict(int)
        for price in range(top + 1):
            count = ways.get(price, 0)
            if price >= coin:
                count += grown[price - coin]
            if count:
                grown[price] = count
        ways = grown
    for p in prices:
        print(ways[p])


main()
