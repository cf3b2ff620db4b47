# recursive segment tree: insert and count what is larger
class SegmentTree:
    def __init__(self, size):
        self.size = size
        self.count = [0] * (4 * size)

    def insert(self, node, lo, hi, pos):
        self.count[node] += 1
        if lo == hi:
            return
        mid = (lo + hi) // 2
        if pos <= mid:
            self.insert(2 * node, lo, mid, pos)
        else:
            self.insert(2 * node + 1, mid + 1, hi, pos)

    def above(self, node, lo, hi, pos):
        if lo == hi:
            return 0
        mid = (lo + hi) // 2
        if pos <= mid:
            return self.count[2 * node + 1] + self.above(2 * node, lo, mid, pos)
        return self.above(2 * node + 1, mid + 1, hi, pos)


def main():
    n = int(input())
    tickets = list(map(int, input().split()))
    values = sorted(set(tickets))
    place = {v: i for i, v in enumerate(values)}
    tree = SegmentTree(len(values))
    answer = 0
    for v in tickets:
        answer += tree.above(1, 0, len(values) - 1, place[v])
        tree.insert(1, 0, len(values) - 1, place[v])
    print(answer)


main()
