# union-find with parity in a class: recursive find is avoided by walking up and then compressing the path
class ParityUnionFind:
    def __init__(self, n):
        self.parent = list(range(n + 1))
        self.parity = [0] * (n + 1)
        self.rank = [0] * (n + 1)

    def find(self, v):
        path = []
        while self.parent[v] != v:
            path.append(v)
            v = self.parent[v]
        parity = 0
        for u in reversed(path):
            parity ^= self.parity[u]
            self.parity[u] = parity
            self.parent[u] = v
        return v, parity

    def add(self, i, j, b):
        """False when the rumour is refused"""
        ri, pi = self.find(i)
        rj, pj = self.find(j)
        if ri == rj:
            return pi ^ pj == b
        if self.rank[ri] < self.rank[rj]:
            ri, rj = rj, ri
        self.parent[rj] = ri
        self.parity[rj] = pi ^ pj ^ b
        if self.rank[ri] == self.rank[rj]:
            self.rank[ri] += 1
        return True


n, m = map(int, input().split())
uf = ParityUnionFind(n)
refused = []
for k in range(m):
    i, j, b = map(int, input().split())
    if not uf.add(i, j, b):
        refused.append(k + 1)
print(len(refused), sum(refused))
