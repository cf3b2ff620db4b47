# one read, count the raw tokens, turn only the different ones into numbers
import sys
from collections import Counter


def main():
    data = sys.stdin.buffer.read().split()
    n = int(data[0])
    count = {int(word): c for word, c in Counter(data[2 : n + 2]).items()}
    values = list(count)
    get = count.get
    out = []
    for kind, word in zip(data[n + 2 :: 2], data[n + 3 :: 2]):
        x = int(word)
        if kind == b"d" and x == 0:
            total = sum(c * (c - 1) for c in count.values()) // 2
        elif kind == b"d":
            total = sum([count[v] * count[v + x] for v in values if v + x in count])
        else:
            total = sum([count[v] * count[x - v] for v in values if x - v in count])
            total = (total - get(x / 2, 0)) // 2
        out.append(total)
    print("\n".join(map(str, out)))


main()
