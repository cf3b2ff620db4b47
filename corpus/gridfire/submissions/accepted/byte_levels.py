# level by level over a padded bytearray that holds the field itself
import sys


def main():
    head, _, body = sys.stdin.buffer.read().partition(b"\n")
    r, c = map(int, head.split())
    w = c + 1
    f = bytearray(b"\n" * w + body + b"\n" * w)
    level = [i for i, ch in enumerate(f) if ch == 70]
    minute = 0
    while True:
        new = []
        add = new.append
        for p in level:
            q = p - w
            if f[q] == 46:
                f[q] = 70
                add(q)
            q = p - 1
            if f[q] == 46:
                f[q] = 70
                add(q)
            q = p + 1
            if f[q] == 46:
                f[q] = 70
                add(q)
            q = p + w
            if f[q] == 46:
                f[q] = 70
                add(q)
        if not new:
            break
        minute += 1
        level = new
    print(minute, f.count(b"."))


main()
