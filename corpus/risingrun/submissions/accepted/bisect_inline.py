# patience piles with bisect_left, generator inlined, append without a search
import sys
from bisect import bisect_left


def main():
    nums = list(map(int, sys.stdin.buffer.read().split()))
    find = bisect_left
    out = []
    for p in range(1, len(nums), 5):
        n, x, a, b, m = nums[p : p + 5]
        piles = [x]
        last = x
        for _ in range(n - 1):
            x = (a * x + b) % m
            if x > last:
                piles.append(x)
                last = x
            elif x < last:
                piles[find(piles, x)] = x
                last = piles[-1]
        out.append(len(piles))
    sys.stdout.write("\n".join(map(str, out)) + "\n")


main()
