# the whole field as one big integer, the front moves by four shifts
import sys


def main():
    head, _, body = sys.stdin.read().partition("\n")
    w = int(head.split()[1]) + 1
    body = body.replace("\n", "#")
    green = int(body.translate({35: "0", 46: "1", 70: "0"}), 2)
    front = int(body.translate({35: "0", 46: "0", 70: "1"}), 2)
    t = 0
    while True:
        front = (front << 1 | front >> 1 | front << w | front >> w) & green
        if not front:
            break
        green ^= front
        t += 1
    print(t, green.bit_count())


main()
