# only words of the newest part can enter the board, the others cannot rise
import sys
from collections import Counter


def main():
    head, body = sys.stdin.buffer.read().split(b"\n", 1)
    k = int(head.split()[1])
    table = bytes(c | 32 if 65 <= c <= 90 else c if 97 <= c <= 122 or c == 35 else 32 for c in range(256))
    parts = body.translate(table).split(b"#")
    count = Counter()
    board = []
    out = []
    for part in parts[:-1]:
        fresh = Counter(part.split())
        count.update(fresh)
        floor = min([count[w] for w in board]) if len(board) == k else 0
        rivals = set(board)
        rivals.update([w for w in fresh if count[w] >= floor])
        board = sorted(rivals, key=lambda w: (-count[w], w))[:k]
        out.append(" ".join(["%s:%d" % (w.decode(), count[w]) for w in board]) or "-")
    print("\n".join(out))


main()
