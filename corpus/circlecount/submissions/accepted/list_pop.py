# direct simulation: pop from a list by index
import sys


def main():
    read = sys.stdin.readline
    for _ in range(int(read())):
        n, k, q = map(int, read().split())
        people = list(range(1, n + 1))
        at = 0
        for left in range(n, n - q, -1):
            at = (at + k - 1) % left
            out = people.pop(at)
        print(out)


main()
