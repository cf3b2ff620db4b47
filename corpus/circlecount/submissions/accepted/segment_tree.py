# segment tree of counts, one walk down both finds and removes
import sys


def build(n):
    base = 1
    while base < n:
        base *= 2
    count = [0] * base + [1] * n + [0] * (base - n)
    for v in range(base - 1, 0, -1):
        count[v] = count[2 * v] + count[2 * v + 1]
    return base, count


def answer(n, k, q):
    base, count = build(n)
    rank = 0
    for left in range(n, n - q, -1):
        rank = (rank + k - 1) % left
        need = rank
        v = 1
        while v < base:
            count[v] -= 1
            v += v
            if count[v] <= need:
                need -= count[v]
                v += 1
        count[v] = 0
    return v - base + 1


def main():
    input = sys.stdin.readline
    for _ in range(int(input())):
        n, k, q = map(int, input().split())
        print(answer(n, k, q))


main()
