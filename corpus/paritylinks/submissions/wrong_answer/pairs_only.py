# tempting shortcut: a rumour is refused only where the same two switches were linked before
import sys

data = sys.stdin.buffer.read().split()
known = {}
refused = []
for k, (i, j, b) in enumerate(zip(data[2::3], data[3::3], data[4::3]), 1):
    if i == j:
        if b == b"1":
            refused.append(k)
    elif known.setdefault((min(i, j), max(i, j)), b) != b:
        refused.append(k)
print(len(refused), sum(refused))
