# bottom-up table in one dictionary with (coin, price) as the key
def fill(coins, top):
    table = {}
    for price in range(top + 1):
        table[coins[0], price] = 1
    for before, coin in zip(coins, coins[1:]):
        for price in range(top + 1):
            table[coin, price] = table[before, price] + table.get((coin, price - coin), 0)
    return table


k, q = (int(x) for x in input().split())
coins = [int(x) for x in input().split()]
prices = [int(x) for x in input().split()]
table = fill(coins, max(prices))
for price in prices:
    print(table[coins[-1], price])
