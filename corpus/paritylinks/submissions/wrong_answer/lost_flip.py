# union-find that hangs roots together with the parity of the link alone
n, m = map(int, input().split())
up = list(range(n + 1))
par = [0] * (n + 1)


def find(v):
    p = 0
    while up[v] != v:
        p ^= par[v]
        v = up[v]
    return v, p


c = s = 0
for k in range(1, m + 1):
    i, j, b = map(int, input().split())
    x, p = find(i)
    y, q = find(j)
    if x != y:
        up[x] = y
        par[x] = b
    elif p ^ q != b:
        c += 1
        s += k
print(c, s)
