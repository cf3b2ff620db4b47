# prefix sums along each remainder class, done by slices and accumulate
import sys
from itertools import accumulate


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    k = data[0]
    coins, prices = data[2 : 2 + k], data[2 + k :]
    ways = [1] * (max(prices) + 1)
    for c in coins[1:]:
        for r in range(c):
            ways[r::c] = accumulate(ways[r::c])
    sys.stdout.write("".join(f"{ways[p]}\n" for p in prices))


main()
