# fast: shows the best words of the newest part and forgets the rest
import sys
from collections import Counter

head, body = sys.stdin.buffer.read().split(b"\n", 1)
k = int(head.split()[1])
table = bytes(c | 32 if 65 <= c <= 90 else c if 97 <= c <= 122 or c == 35 else 32 for c in range(256))
for part in body.translate(table).split(b"#")[:-1]:
    best = sorted([(-c, w) for w, c in Counter(part.split()).items() if c > 1])[:k]
    print(" ".join(["%s:%d" % (w.decode(), -c) for c, w in best]) or "-")
