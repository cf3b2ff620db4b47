# union-find whose parent entry holds 2 * parent + parity; one read, path halving inline
import sys


def main():
    data = iter(map(int, sys.stdin.buffer.read().split()))
    n, m = next(data), next(data)
    link = [2 * v for v in range(n + 1)]
    count = total = 0
    for k, (i, j, b) in enumerate(zip(data, data, data), 1):
        c = link[i]
        p = c >> 1
        b ^= c & 1
        while True:
            c = link[p]
            if c >> 1 == p:
                break
            link[i] = link[i] & 1 ^ c
            i = p
            p = c >> 1
            b ^= c & 1
        c = link[j]
        q = c >> 1
        b ^= c & 1
        while True:
            c = link[q]
            if c >> 1 == q:
                break
            link[j] = link[j] & 1 ^ c
            j = q
            q = c >> 1
            b ^= c & 1
        if p != q:
            link[q] = 2 * p + b
        elif b:
            count += 1
            total += k
    print(count, total)


main()
