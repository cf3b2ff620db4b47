# one whole round of the circle at a time with an extended slice
import sys


def play(n, k, q):
    circle = list(range(1, n + 1))
    start = k - 1
    gone = 0
    while True:
        length = len(circle)
        start %= length
        out = circle[start::k]
        if gone + len(out) >= q:
            return out[q - gone - 1]
        gone += len(out)
        del circle[start::k]
        start += len(out) * k - length


def main():
    tokens = sys.stdin.read().split()
    res = []
    for i in range(1, len(tokens), 3):
        n, k, q = map(int, tokens[i : i + 3])
        res.append(play(n, k, q))
    print("\n".join(map(str, res)))


main()
