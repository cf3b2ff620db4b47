# all counts packed into one big integer; 1 / (1 - x^c) as (1 + x^c)(1 + x^2c)(1 + x^4c)...
import sys

SLOT = 64


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    k = data[0]
    prices = data[2 + k :]
    size = max(prices) + 1
    keep = (1 << SLOT * size) - 1
    series = int.from_bytes(b"\1\0\0\0\0\0\0\0" * size, "little")
    for c in data[3 : 2 + k]:
        while c < size:
            series += series << SLOT * c & keep
            c *= 2
    raw = series.to_bytes(8 * size, "little")
    print("\n".join(str(int.from_bytes(raw[8 * p : 8 * p + 8], "little")) for p in prices))


main()
