# all pieces of one length as the bits of one integer, two letters longer each step
import sys


def main():
    out = []
    for s in sys.stdin.read().split()[1:]:
        n = len(s)
        masks = [int("".join("1" if ch == c else "0" for ch in s), 2) for c in set(s)]
        total = n
        best = 1
        for start, layer in ((3, (1 << n) - 1), (2, (1 << n + 1) - 1)):
            length = start
            while layer and length <= n:
                gap = length - 1
                same = 0
                for m in masks:
                    same |= m & m >> gap
                layer = layer >> 1 & same
                if layer:
                    total += layer.bit_count()
                    if length > best:
                        best = length
                length += 2
        out.append(f"{total} {best}")
    print("\n".join(out))


main()
