# a class with a cache that grows on demand
import sys


class Sequence:
    def __init__(self, a, b, m, x0, x1):
        self.a, self.b, self.m = a, b, m
        self.cache = {0: x0, 1: x1}
        self.known = 1

    def __getitem__(self, n):
        while self.known < n:
            self.known += 1
            i = self.known
            self.cache[i] = (self.a * self.cache[i - 1] + self.b * self.cache[i - 2]) % self.m
        return self.cache[n]


def main():
    a, b, m, x0, x1 = map(int, sys.stdin.readline().split())
    x = Sequence(a, b, m, x0, x1)
    for _ in range(int(sys.stdin.readline())):
        print(x[int(sys.stdin.readline())])


main()
