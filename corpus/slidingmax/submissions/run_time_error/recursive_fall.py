# recursive running maximum over the block: too deep for long windows
import sys


def suffix(a, lo, hi, out):
    if lo == hi - 1:
        out[lo] = a[lo]
    else:
        suffix(a, lo + 1, hi, out)
        out[lo] = max(a[lo], out[lo + 1])


n, q = map(int, sys.stdin.readline().split())
a = list(map(int, sys.stdin.readline().split()))
for k in map(int, sys.stdin.readline().split()):
    suf, pre = [0] * n, [0] * n
    for at in range(0, n, k):
        end = min(n, at + k)
        suffix(a, at, end, suf)
        best = 0
        for i in range(at, end):
            best = pre[i] = max(best, a[i])
    print(sum(max(suf[i], pre[i + k - 1]) for i in range(n - k + 1)))
