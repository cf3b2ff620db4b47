# two-dimensional table: coin by price
import sys


def main():
    lines = sys.stdin.readlines()
    coins = [int(x) for x in lines[1].split()]
    prices = [int(x) for x in lines[2].split()]
    top = max(prices)
    table = [[0] * (top + 1) for _ in range(len(coins) + 1)]
    for row in table:
        row[0] = 1
    for i, coin in enumerate(coins, 1):
        for p in range(1, top + 1):
            table[i][p] = table[i - 1][p]
            if p >= coin:
                table[i][p] += table[i][p - coin]
    for p in prices:
        print(table[len(coins)][p])


main()
