# segment tree over compressed heights, one range maximum per day
import sys


class MaxTree:
    def __init__(self, size):
        self.size = size
        self.t = [0] * (2 * size)

    def update(self, i, value):
        i += self.size
        while i and self.t[i] < value:
            self.t[i] = value
            i >>= 1

    def prefix(self, r):
        l = self.size
        r += self.size
        best = 0
        while l < r:
            if l & 1:
                best = max(best, self.t[l])
                l += 1
            if r & 1:
                r -= 1
                best = max(best, self.t[r])
            l >>= 1
            r >>= 1
        return best


def solve(n, s, a, b, m):
    xs = []
    for _ in range(n):
        xs.append(s)
        s = (s * a + b) % m
    rank = {v: i for i, v in enumerate(sorted(set(xs)))}
    tree = MaxTree(len(rank))
    for x in xs:
        r = rank[x]
        tree.update(r, tree.prefix(r) + 1)
    return tree.prefix(len(rank))


input = sys.stdin.readline
for _ in range(int(input())):
    print(solve(*map(int, input().split())))
