# for each question walk the weights once and remember what was seen so far
from sys import stdin


def count_sum(a, x):
    seen = {}
    found = 0
    for v in a:
        found += seen.get(x - v, 0)
        seen[v] = seen.get(v, 0) + 1
    return found


def count_difference(a, x):
    seen = {}
    found = 0
    for v in a:
        found += seen.get(v - x, 0)
        if x:
            found += seen.get(v + x, 0)
        seen[v] = seen.get(v, 0) + 1
    return found


def main():
    n, q = map(int, stdin.readline().split())
    a = [int(stdin.readline()) for _ in range(n)]
    for _ in range(q):
        kind, x = stdin.readline().split()
        print((count_sum if kind == "s" else count_difference)(a, int(x)))


main()
