# counts upwards; each divisor waits in a dictionary at its next multiple
import sys


def divisor_sums(limit):
    waiting = {}
    for k in range(1, limit + 1):
        here = waiting.pop(k, [])
        here.append(k)
        yield sum(here)
        for d in here:
            waiting.setdefault(k + d, []).append(d)


def main():
    asks = [tuple(map(int, line.split())) for line in sys.stdin.readlines()[1:]]
    prefix = [0]
    for value in divisor_sums(max(r for _, r in asks)):
        prefix.append(prefix[-1] + value)
    for l, r in asks:
        print(prefix[r] - prefix[l - 1])


main()
