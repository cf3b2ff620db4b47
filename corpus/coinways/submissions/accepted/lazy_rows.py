# chained generators, one for each coin, each with a queue of its last values
import sys
from collections import deque


def with_coin(source, coin):
    window = deque([0] * coin)
    for count in source:
        count += window.popleft()
        window.append(count)
        yield count


def stream(coins, top):
    source = iter([1] + [0] * top)
    for coin in coins:
        source = with_coin(source, coin)
    return source


k, q = map(int, sys.stdin.readline().split())
coins = list(map(int, sys.stdin.readline().split()))
prices = list(map(int, sys.stdin.readline().split()))
ways = list(stream(coins, max(prices)))
print(*[ways[p] for p in prices], sep="\n")
