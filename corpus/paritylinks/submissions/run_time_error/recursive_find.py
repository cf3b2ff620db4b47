# union-find with parity and a recursive find, no ranks
n, m = map(int, input().split())
up = list(range(n + 1))
par = [0] * (n + 1)


def find(v):
    if up[v] == v:
        return v, 0
    root, p = find(up[v])
    return root, p ^ par[v]


c = s = 0
for k in range(1, m + 1):
    i, j, b = map(int, input().split())
    x, p = find(i)
    y, q = find(j)
    if x != y:
        up[x] = y
        par[x] = p ^ q ^ b
    elif p ^ q != b:
        c += 1
        s += k
print(c, s)
