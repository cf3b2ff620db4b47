# recursion with a cache, one call for each coin laid down
import sys
from functools import lru_cache

data = list(map(int, sys.stdin.read().split()))
k = data[0]
coins, prices = data[2 : 2 + k], data[2 + k :]


@lru_cache(maxsize=None)
def ways(i, price):
    if price == 0:
        return 1
    if price < 0 or i == k:
        return 0
    return ways(i, price - coins[i]) + ways(i + 1, price)


for p in prices:
    print(ways(0, p))
