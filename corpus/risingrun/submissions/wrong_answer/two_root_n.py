# guesses 2 * sqrt(n) days without looking at the heights
import sys
from math import isqrt

lines = sys.stdin.buffer.read().splitlines()[1:]
print("\n".join(str(max(1, isqrt(4 * int(line.split()[0])) - 2)) for line in lines))
