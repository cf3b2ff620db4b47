# bottom-up segment tree, one range query a window
import sys


class Tree:
    def __init__(self, values):
        self.n = len(values)
        self.t = [0] * self.n + values
        for i in range(self.n - 1, 0, -1):
            self.t[i] = max(self.t[2 * i], self.t[2 * i + 1])

    def top(self, lo, hi):
        t = self.t
        lo += self.n
        hi += self.n
        best = 0
        while lo < hi:
            if lo & 1:
                if t[lo] > best:
                    best = t[lo]
                lo += 1
            if hi & 1:
                hi -= 1
                if t[hi] > best:
                    best = t[hi]
            lo >>= 1
            hi >>= 1
        return best


def main():
    inp = sys.stdin
    n, q = map(int, inp.readline().split())
    tree = Tree(list(map(int, inp.readline().split())))
    for k in map(int, inp.readline().split()):
        print(sum(tree.top(i, i + k) for i in range(n - k + 1)))


main()
