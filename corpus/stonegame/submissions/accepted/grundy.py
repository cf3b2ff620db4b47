# Sprague-Grundy numbers by mex over a set; a heap is lost where the number is zero
import sys


def grundy_numbers(n, moves):
    g = []
    for heap in range(n + 1):
        reach = {g[heap - s] for s in moves if s <= heap}
        mex = 0
        while mex in reach:
            mex += 1
        g.append(mex)
    return g


def main():
    for line in sys.stdin.readlines()[1:]:
        n, _, *moves = map(int, line.split())
        g = grundy_numbers(n, sorted(set(moves)))
        last = n
        while g[last]:
            last -= 1
        print(g.count(0), last, "first" if g[n] else "second")


main()
