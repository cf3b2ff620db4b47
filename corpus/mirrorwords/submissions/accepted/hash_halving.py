# polynomial hashes of the word and its mirror, radius by binary search
import sys

MOD = (1 << 61) - 1
BASE = 911_382_323
power = [1]
while len(power) < 500:
    power.append(power[-1] * BASE % MOD)


def prefix_hashes(s):
    h = [0]
    for ch in s:
        h.append((h[-1] * BASE + ord(ch)) % MOD)
    return h


def solve(s):
    n = len(s)
    fore = prefix_hashes(s)
    back = prefix_hashes(s[::-1])
    total = 0
    best = 1
    for c in range(2 * n - 1):
        # the arms grow to the left of `left` and from `right` on
        left, right = (c + 1) // 2, c // 2 + 1
        lo, hi = 0, min(left, n - right)
        while lo < hi:
            k = (lo + hi + 1) // 2
            arm = (fore[right + k] - fore[right] * power[k]) % MOD
            at = n - left
            if arm == (back[at + k] - back[at] * power[k]) % MOD:
                lo = k
            else:
                hi = k - 1
        size = 2 * lo + right - left
        total += lo + right - left
        if size > best:
            best = size
    return total, best


def main():
    for s in sys.stdin.read().split()[1:]:
        print(*solve(s))


main()
