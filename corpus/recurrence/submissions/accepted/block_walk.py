# group the questions by blocks of 256, jump from block to block with one matrix
import sys
from collections import defaultdict

WIDTH = 256


def main():
    lines = sys.stdin.readlines()
    a, b, m, x0, x1 = map(int, lines[0].split())
    asked = [int(line) for line in lines[2:]]
    groups = defaultdict(list)
    for place, n in enumerate(asked):
        groups[n // WIDTH].append((n % WIDTH, place))

    def advance(old, new, steps):
        for _ in range(steps):
            old, new = new, (a * new + b * old) % m
        return old, new

    p, r = advance(1 % m, 0, WIDTH)
    q, s = advance(0, 1 % m, WIDTH)
    answer = [0] * len(asked)
    old, new = x0, x1
    for block in range(max(groups) + 1):
        here, there, done = old, new, 0
        for offset, place in sorted(groups.get(block, ())):
            here, there = advance(here, there, offset - done)
            done = offset
            answer[place] = here
        old, new = (p * old + q * new) % m, (r * old + s * new) % m
    print("\n".join(map(str, answer)))


main()
