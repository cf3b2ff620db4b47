# offline: the links that join two groups are always believed, so colour their forest once and check the others
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, m = data[0], data[1]
    heads, tails, bits = data[2::3], data[3::3], data[4::3]
    root = list(range(n + 1))
    near = [[] for _ in range(n + 1)]
    for i, j, b in zip(heads, tails, bits):
        p, q = i, j
        while root[p] != p:
            root[p] = p = root[root[p]]
        while root[q] != q:
            root[q] = q = root[root[q]]
        if p != q:
            root[q] = p
            near[i].append((j, b))
            near[j].append((i, b))
    colour = [-1] * (n + 1)
    for start in range(1, n + 1):
        if colour[start] < 0:
            colour[start] = 0
            stack = [start]
            while stack:
                v = stack.pop()
                for w, b in near[v]:
                    if colour[w] < 0:
                        colour[w] = colour[v] ^ b
                        stack.append(w)
    wrong = [k + 1 for k in range(m) if colour[heads[k]] ^ colour[tails[k]] ^ bits[k]]
    print(len(wrong), sum(wrong))


main()
