# packed big integer with 32 bits a count: large counts spill over
import sys

data = list(map(int, sys.stdin.buffer.read().split()))
k = data[0]
prices = data[2 + k :]
size = max(prices) + 1
keep = (1 << 32 * size) - 1
series = int.from_bytes(b"\1\0\0\0" * size, "little")
for c in data[3 : 2 + k]:
    while c < size:
        series += series << 32 * c & keep
        c *= 2
raw = (series & keep).to_bytes(4 * size, "little")
print("\n".join(str(int.from_bytes(raw[4 * p : 4 * p + 4], "little")) for p in prices))
