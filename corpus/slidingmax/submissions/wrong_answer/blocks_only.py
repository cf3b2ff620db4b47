# tempting shortcut: takes one crest a block and scales it to the number of windows
import sys

data = sys.stdin.buffer.read().split()
n, q = int(data[0]), int(data[1])
a = list(map(int, data[2:n + 2]))
for k in map(int, data[n + 2:]):
    tops = [max(a[i:i + k]) for i in range(0, n, k)]
    print(sum(tops) * (n - k + 1) // len(tops))
