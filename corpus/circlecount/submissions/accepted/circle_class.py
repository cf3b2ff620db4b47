# a Circle object with a cursor; leaving is a `del` on its list


class Circle:
    def __init__(self, n, k):
        self.members = list(range(1, n + 1))
        self.step = k
        self.cursor = 0

    def next_out(self):
        self.cursor = (self.cursor + self.step - 1) % len(self.members)
        child = self.members[self.cursor]
        del self.members[self.cursor]
        return child

    def nth_out(self, q):
        for _ in range(q - 1):
            self.next_out()
        return self.next_out()


games = int(input())
for _ in range(games):
    n, k, q = map(int, input().split())
    print(Circle(n, k).nth_out(q))
