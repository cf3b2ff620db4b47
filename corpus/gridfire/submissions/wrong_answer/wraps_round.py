# one big integer without a border column: rows leak into each other
import sys

head, _, body = sys.stdin.read().partition("\n")
w = int(head.split()[1])
body = body.replace("\n", "")
green = int("0" + body.replace("#", "0").replace(".", "1").replace("F", "0"), 2)
front = int("0" + body.replace("#", "0").replace(".", "0").replace("F", "1"), 2)
t = 0
while front:
    front = (front << 1 | front >> 1 | front << w | front >> w) & green
    green ^= front
    t += 1
print(max(0, t - 1), green.bit_count())
