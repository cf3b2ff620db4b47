# keeps sixteen marks on the way and walks from the nearest one below
import sys

MARKS = 16


def main():
    a, b, m, x0, x1 = map(int, sys.stdin.readline().split())
    asked = list(map(int, sys.stdin.read().split()))[1:]
    gap = max(asked) // MARKS + 1
    marks = []
    old, new = x0, x1
    for i in range(max(asked) + 1):
        if i % gap == 0:
            marks.append((old, new))
        old, new = new, (a * new + b * old) % m
    for n in asked:
        old, new = marks[n // gap]
        for _ in range(n % gap):
            old, new = new, (a * new + b * old) % m
        print(old)


main()
