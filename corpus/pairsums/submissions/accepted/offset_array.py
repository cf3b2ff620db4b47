# counting array over the whole range of numbers, indexed from the smallest
import sys


def main():
    tokens = sys.stdin.read().split()
    n, q = int(tokens[0]), int(tokens[1])
    a = [int(t) for t in tokens[2 : n + 2]]
    low = min(a)
    span = max(a) - low + 1
    cnt = [0] * span
    for v in a:
        cnt[v - low] += 1
    for i in range(q):
        kind = tokens[n + 2 + 2 * i]
        x = int(tokens[n + 3 + 2 * i])
        total = 0
        if kind == "s":
            x -= 2 * low
            first = max(0, x - span + 1)
            for u in range(first, (x + 1) // 2):
                if cnt[u]:
                    total += cnt[u] * cnt[x - u]
            if x % 2 == 0 and 0 <= x // 2 < span:
                total += cnt[x // 2] * (cnt[x // 2] - 1) // 2
        elif x == 0:
            for c in cnt:
                total += c * (c - 1) // 2
        else:
            for u in range(span - x):
                if cnt[u]:
                    total += cnt[u] * cnt[u + x]
        print(total)


main()
