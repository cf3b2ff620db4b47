# binary search for the radius with direct comparison of slices
import sys


def radius(s, back, left, right):
    n = len(s)
    lo, hi = 0, min(left, n - right)
    while lo < hi:
        k = (lo + hi + 1) >> 1
        if s[right : right + k] == back[n - left : n - left + k]:
            lo = k
        else:
            hi = k - 1
    return lo


def main():
    out = []
    for s in sys.stdin.read().split()[1:]:
        back = s[::-1]
        odd = [radius(s, back, i, i + 1) for i in range(len(s))]
        even = [radius(s, back, i, i) for i in range(1, len(s))]
        longest = max(2 * max(odd) + 1, 2 * max(even, default=0))
        out.append(f"{len(s) + sum(odd) + sum(even)} {longest}")
    print("\n".join(out))


main()
