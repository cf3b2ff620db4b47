# fills a fresh table for every single price
import sys


def pay(coins, price):
    table = [[1] + [0] * price for _ in range(len(coins) + 1)]
    for i, coin in enumerate(coins, 1):
        for p in range(1, price + 1):
            table[i][p] = table[i - 1][p]
            if p >= coin:
                table[i][p] += table[i][p - coin]
    return table[-1][price]


data = list(map(int, sys.stdin.read().split()))
k = data[0]
for price in data[2 + k :]:
    print(pay(data[2 : 2 + k], price))
