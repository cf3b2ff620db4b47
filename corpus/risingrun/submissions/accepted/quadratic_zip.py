# quadratic table, inner loop over zip(heights, lengths)
import sys


def solve(xs):
    lens = []
    for x in xs:
        best = 0
        for y, l in zip(xs, lens):
            if y < x and l > best:
                best = l
        lens.append(best + 1)
    return max(lens)


def main():
    t = int(sys.stdin.readline())
    for _ in range(t):
        n, s, a, b, m = map(int, sys.stdin.readline().split())
        xs = [s]
        while len(xs) < n:
            xs.append((xs[-1] * a + b) % m)
        print(solve(xs))


main()
