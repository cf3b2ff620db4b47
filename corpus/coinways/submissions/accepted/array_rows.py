# rows of 64-bit integers in array objects, class with a method for each access
import sys
from array import array


class Kiosk:
    def __init__(self, top):
        self.top = top
        self.ways = array("q", bytes(8 * (top + 1)))
        self.ways[0] = 1

    def add(self, coin):
        price = coin
        while price <= self.top:
            self.raise_by(price, self.pay(price - coin))
            price += 1

    def raise_by(self, price, count):
        self.ways[price] += count

    def pay(self, price):
        return self.ways[price]


def main():
    _, coins, prices = sys.stdin.read().splitlines()
    prices = [int(p) for p in prices.split()]
    kiosk = Kiosk(max(prices))
    for coin in coins.split():
        kiosk.add(int(coin))
    for p in prices:
        print(kiosk.pay(p))


main()
