# the window as a sorted list: bisect.insort the newcomer, bisect the leaver out
from bisect import bisect_left, insort


def crests(seq, width):
    window = sorted(seq[:width])
    yield window[-1]
    for old, new in zip(seq, seq[width:]):
        del window[bisect_left(window, old)]
        insort(window, new)
        yield window[-1]


if __name__ == "__main__":
    input()
    seq = list(map(int, input().split()))
    for width in map(int, input().split()):
        print(sum(crests(seq, width)))
