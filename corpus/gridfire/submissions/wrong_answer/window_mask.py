# one big integer, drops the rows that the front has left and never looks back
import sys


def main():
    data = sys.stdin.read().split()
    w = int(data[1]) + 1
    body = "0".join(data[2:])
    green = int(body.replace("#", "0").replace(".", "1").replace("F", "0"), 2)
    front = int(body.replace("#", "0").replace(".", "0").replace("F", "1"), 2)
    t = 0
    saved = 0
    while front:
        spread = front << 1 | front >> 1 | front << w | front >> w
        front = spread & green
        green ^= front
        t += 1
        low = (front & -front).bit_length() - 1 - 2 * w
        if t % 32 == 0 and low > 8 * w:
            saved += (green & (1 << low) - 1).bit_count()
            green >>= low
            front >>= low
    print(max(t - 1, 0), saved + green.bit_count())


main()
