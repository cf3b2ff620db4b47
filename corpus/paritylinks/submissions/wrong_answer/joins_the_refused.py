# doubled nodes; joins both sides even where the rumour was refused
n, m = map(int, input().split())
parent = list(range(2 * n + 2))


def find(v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


c = s = 0
for k in range(1, m + 1):
    i, j, b = map(int, input().split())
    if find(2 * i) == find(2 * j + 1 - b):
        c += 1
        s += k
    parent[find(2 * i)] = find(2 * j + b)
    parent[find(2 * i + 1)] = find(2 * j + 1 - b)
print(c, s)
