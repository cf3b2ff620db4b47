# sort all weights, two pointers over the full list, runs counted on the fly
import sys


def sums(a, x):
    lo, hi, total = 0, len(a) - 1, 0
    while lo < hi:
        s = a[lo] + a[hi]
        if s < x:
            lo += 1
        elif s > x:
            hi -= 1
        elif a[lo] == a[hi]:
            m = hi - lo + 1
            return total + m * (m - 1) // 2
        else:
            left, right = a[lo], a[hi]
            l = r = 0
            while a[lo] == left:
                lo += 1
                l += 1
            while a[hi] == right:
                hi -= 1
                r += 1
            total += l * r
    return total


def differences(a, x):
    first = after = total = 0
    for i, v in enumerate(a):
        low = v - x
        while a[first] < low:
            first += 1
        if after < first:
            after = first
        while after < i and a[after] <= low:
            after += 1
        total += after - first
    return total


def main():
    n, q = map(int, input().split())
    a = sorted(int(input()) for _ in range(n))
    for _ in range(q):
        kind, x = input().split()
        print(sums(a, int(x)) if kind == "s" else differences(a, int(x)))


main()
