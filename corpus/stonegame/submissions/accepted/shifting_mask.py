# a future mask: or-in the moves at every lost heap, skip the run of won heaps by its trailing ones
import sys


def solve(n, moves):
    mask = 0
    for s in set(moves):
        mask |= 1 << s
    future = 0
    heap = count = last = 0
    while heap <= n:
        count += 1
        last = heap
        future |= mask
        # bit 0 is this heap; the lowest zero above it is the next lost heap
        future |= 1
        step = (~future & future + 1).bit_length() - 1
        future >>= step
        heap += step
    return count, last


def main():
    data = sys.stdin.read().split("\n")
    for line in data[1:int(data[0]) + 1]:
        n, k, *moves = map(int, line.split())
        count, last = solve(n, moves)
        print(count, last, "second" if last == n else "first")


main()
