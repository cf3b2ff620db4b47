# Fenwick tree of prefix maxima over compressed heights
import sys


def main():
    nums = list(map(int, sys.stdin.buffer.read().split()))
    answers = []
    for p in range(1, 5 * nums[0], 5):
        n, s, a, b, m = nums[p : p + 5]
        xs = []
        for _ in range(n):
            xs.append(s)
            s = (s * a + b) % m
        order = sorted(set(xs))
        index = dict(zip(order, range(1, len(order) + 1)))
        size = len(order)
        tree = [0] * (size + 1)
        top = 0
        for x in xs:
            pos = index[x]
            best = 0
            i = pos - 1
            while i > 0:
                if tree[i] > best:
                    best = tree[i]
                i &= i - 1
            best += 1
            if best > top:
                top = best
            while pos <= size and tree[pos] < best:
                tree[pos] = best
                pos += pos & -pos
        answers.append(top)
    print("\n".join(map(str, answers)))


main()
