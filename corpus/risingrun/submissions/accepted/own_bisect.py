# patience piles with a hand-written binary search
import sys


def find(piles, x):
    lo, hi = 0, len(piles)
    while lo < hi:
        mid = (lo + hi) // 2
        if piles[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def run_length(n, s, a, b, m):
    piles = []
    for _ in range(n):
        where = find(piles, s)
        piles[where : where + 1] = [s]
        s = (a * s + b) % m
    return len(piles)


def main():
    winters = sys.stdin.read().splitlines()[1:]
    for w in winters:
        print(run_length(*[int(v) for v in w.split()]))


if __name__ == "__main__":
    main()
