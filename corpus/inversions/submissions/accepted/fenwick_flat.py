# Fenwick tree with everything local, places taken in the order of the values instead of the reverse
import sys


def main():
    data = sys.stdin.buffer.read().split()
    n = int(data[0])
    t = list(map(int, data[1:]))
    order = sorted(range(n), key=t.__getitem__)
    # tree[i] counts places still to come; walk the values upwards, ties by place
    tree = [i & -i for i in range(n + 1)]
    total = 0
    for i in order:
        j = i
        while j:
            total += tree[j]
            j &= j - 1
        j = i + 1
        while j <= n:
            tree[j] -= 1
            j += j & -j
    print(total)


main()
