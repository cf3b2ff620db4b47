# halves counted by a two-pointer walk, then joined by list.sort, which merges two runs fast
import sys


def count(a, lo, hi):
    if hi - lo < 2:
        return 0
    mid = (lo + hi) >> 1
    c = count(a, lo, mid) + count(a, mid, hi)
    right = a[mid:hi]
    size = len(right)
    j = 0
    for x in a[lo:mid]:
        while j < size and right[j] < x:
            j += 1
        c += j
    a[lo:hi] = sorted(a[lo:hi])
    return c


def main():
    data = sys.stdin.read().split()
    a = [int(x) for x in data[1:]]
    print(count(a, 0, len(a)))


main()
