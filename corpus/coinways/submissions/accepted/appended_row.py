# builds each coin's row by appending, zip keeps old and new row in step
import sys
from itertools import islice


def add_coin(ways, coin):
    row = ways[:coin]
    push = row.append
    for old, w in zip(islice(ways, coin, None), row):
        push(old + w)
    return row


def main():
    head, coins, prices = sys.stdin.read().splitlines()
    prices = list(map(int, prices.split()))
    ways = [1] * (max(prices) + 1)
    for coin in map(int, coins.split()[1:]):
        ways = add_coin(ways, coin)
    print("\n".join(str(ways[p]) for p in prices))


main()
