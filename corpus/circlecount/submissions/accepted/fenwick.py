# Fenwick tree over the standing children, binary descent to the wanted rank
import sys


def find_qth(n, k, q):
    tree = [i & -i for i in range(n + 1)]
    top = 1 << (n.bit_length() - 1)
    rank = 0
    child = 0
    for left in range(n, n - q, -1):
        rank = (rank + k - 1) % left
        node, need, bit = 0, rank, top
        while bit:
            nxt = node + bit
            if nxt <= n and tree[nxt] <= need:
                node = nxt
                need -= tree[nxt]
            bit >>= 1
        child = node + 1
        i = child
        while i <= n:
            tree[i] -= 1
            i += i & -i
    return child


out = []
stream = iter(sys.stdin.read().split())
for _ in range(int(next(stream))):
    n, k, q = int(next(stream)), int(next(stream)), int(next(stream))
    out.append(find_qth(n, k, q))
sys.stdout.write("\n".join(map(str, out)) + "\n")
