# every group is a big integer of members, one integer holds all sides; labels are looked up through a table of heads
import sys


def main():
    read = sys.stdin.buffer.readline
    n, m = map(int, read().split())
    mask = [1 << v for v in range(n + 1)]
    parent = [-1] * (n + 1)
    sides = 0
    refused = number_sum = 0
    for k in range(1, m + 1):
        i, j, b = map(int, read().split())
        p, q = i, j
        while parent[p] >= 0:
            p = parent[p]
        while parent[q] >= 0:
            q = parent[q]
        wrong = (sides >> i ^ sides >> j ^ b) & 1
        if p == q:
            if wrong:
                refused += 1
                number_sum += k
            continue
        if parent[p] > parent[q]:
            p, q = q, p
        parent[p] += parent[q]
        parent[q] = p
        if wrong:
            sides ^= mask[q]
        mask[p] |= mask[q]
        mask[q] = 0
    print(refused, number_sum)


main()
