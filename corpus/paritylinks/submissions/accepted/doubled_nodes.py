# plain union-find on 2n nodes: "i is up" and "i is down"
import sys


def find(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


def main():
    data = list(map(int, sys.stdin.read().split()))
    n, m = data[0], data[1]
    parent = list(range(2 * n + 2))
    size = [1] * (2 * n + 2)
    refused = []
    at = 2
    for k in range(1, m + 1):
        i, j, b = data[at], data[at + 1], data[at + 2]
        at += 3
        one = 2 * i
        if find(parent, one) == find(parent, 2 * j + 1 - b):
            refused.append(k)
            continue
        for s in (0, 1):
            p = find(parent, one + s)
            q = find(parent, 2 * j + (b ^ s))
            if p != q:
                if size[p] < size[q]:
                    p, q = q, p
                parent[q] = p
                size[p] += size[q]
    print(len(refused), sum(refused))


main()
