# a generator of the numbers feeds a list; input() for each line
from itertools import islice


def machine(a, b, m, x0, x1):
    while True:
        yield x0
        x0, x1 = x1, (a * x1 + b * x0) % m


rule = tuple(map(int, input().split()))
asked = [int(input()) for _ in range(int(input()))]
numbers = list(islice(machine(*rule), max(asked) + 1))
print(*(numbers[n] for n in asked), sep="\n")
