# one row of the table, updated in place for every coin
def main():
    input()
    coins = map(int, input().split())
    prices = list(map(int, input().split()))
    n = max(prices) + 1
    ways = [1] + [0] * (n - 1)
    for c in coins:
        for p in range(c, n):
            ways[p] += ways[p - c]
    for p in prices:
        print(ways[p])


main()
