# Fenwick tree over compressed values
import sys


class Fenwick:
    def __init__(self, size):
        self.size = size
        self.tree = [0] * (size + 1)

    def add(self, i):
        while i <= self.size:
            self.tree[i] += 1
            i += i & -i

    def prefix(self, i):
        s = 0
        while i > 0:
            s += self.tree[i]
            i -= i & -i
        return s


def main():
    input = sys.stdin.readline
    n = int(input())
    t = list(map(int, input().split()))
    rank = {v: i + 1 for i, v in enumerate(sorted(set(t)))}
    fw = Fenwick(len(rank))
    ans = 0
    for seen, v in enumerate(t):
        r = rank[v]
        ans += seen - fw.prefix(r)
        fw.add(r)
    print(ans)


main()
