# groups as lists, the second group always moves into the first
import sys

lines = sys.stdin.readlines()
n, m = map(int, lines[0].split())
group = [[v] for v in range(n + 1)]
colour = [0] * (n + 1)
count = total = 0
for k in range(1, m + 1):
    a, b, c = map(int, lines[k].split())
    if group[a] is group[b]:
        if colour[a] ^ colour[b] != c:
            count += 1
            total += k
        continue
    flip = colour[a] ^ colour[b] ^ c
    target = group[a]
    for v in group[b]:
        colour[v] ^= flip
        target.append(v)
        if v != b:
            group[v] = target
    group[b] = target
print(count, total)
