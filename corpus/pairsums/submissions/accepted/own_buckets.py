# hand-made hash table with chains, asked once for every weight
import sys

SIZE = 4093


class Table:
    def __init__(self):
        self.chains = [[] for _ in range(SIZE)]

    def add(self, value):
        chain = self.chains[value % SIZE]
        for entry in chain:
            if entry[0] == value:
                entry[1] += 1
                return
        chain.append([value, 1])

    def count(self, value):
        for key, times in self.chains[value % SIZE]:
            if key == value:
                return times
        return 0


def main():
    n, q = map(int, sys.stdin.readline().split())
    weights = [int(sys.stdin.readline()) for _ in range(n)]
    table = Table()
    for w in weights:
        table.add(w)
    for _ in range(q):
        kind, x = sys.stdin.readline().split()
        x = int(x)
        total = 0
        for w in weights:
            if kind == "s":
                total += table.count(x - w) - (w + w == x)
            else:
                total += table.count(w + x) - (x == 0)
        print(total if kind == "d" and x else total // 2)


main()
