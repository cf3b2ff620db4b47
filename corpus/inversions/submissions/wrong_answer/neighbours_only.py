# tempting shortcut: only neighbours in the queue quarrel
import sys

data = sys.stdin.buffer.read().split()
a = list(map(int, data[1:]))
print(sum(map(int.__gt__, a, a[1:])))
