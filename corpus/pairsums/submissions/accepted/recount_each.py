# a class that recounts the weights from scratch for every question
import sys
from collections import Counter


class Workshop:
    def __init__(self, weights):
        self.weights = weights

    def sum_pairs(self, x):
        have = Counter(self.weights)
        want = Counter(x - w for w in self.weights)
        ordered = sum(times * want[value] for value, times in have.items())
        twins = sum(1 for w in self.weights if w + w == x)
        return (ordered - twins) // 2

    def difference_pairs(self, x):
        have = Counter(self.weights)
        want = Counter(w + x for w in self.weights)
        ordered = sum(times * want[value] for value, times in have.items())
        return ordered if x else (ordered - len(self.weights)) // 2


def main():
    lines = sys.stdin.readlines()
    n, q = map(int, lines[0].split())
    shop = Workshop([int(line) for line in lines[1 : n + 1]])
    for line in lines[n + 1 : n + q + 1]:
        kind, x = line.split()
        if kind == "s":
            print(shop.sum_pairs(int(x)))
        else:
            print(shop.difference_pairs(int(x)))


main()
