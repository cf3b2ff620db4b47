# own quicksort, recursion as deep as the longest run of equal numbers
import sys
from bisect import bisect_left, bisect_right


def quicksort(a):
    if len(a) < 2:
        return a
    pivot = a[0]
    return quicksort([v for v in a[1:] if v < pivot]) + [pivot] + quicksort([v for v in a[1:] if v >= pivot])


tokens = sys.stdin.read().split()
n = int(tokens[0])
a = quicksort(list(map(int, tokens[2 : n + 2])))
for kind, word in zip(tokens[n + 2 :: 2], tokens[n + 3 :: 2]):
    x = int(word)
    total = 0
    for i, v in enumerate(a):
        want = x - v if kind == "s" else v + x
        total += bisect_right(a, want, i + 1) - bisect_left(a, want, i + 1)
    print(total)
