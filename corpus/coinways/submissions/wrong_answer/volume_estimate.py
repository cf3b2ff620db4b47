# volume of the simplex of payments instead of their number
import sys
from math import factorial, prod

data = list(map(int, sys.stdin.buffer.read().split()))
k = data[0]
coins, prices = data[2 : 2 + k], data[2 + k :]
half = sum(coins) // 2
below = factorial(k - 1) * prod(coins)
print("\n".join(str((p + half) ** (k - 1) // below) for p in prices))
