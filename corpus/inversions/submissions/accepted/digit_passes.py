# bit by bit from the top: within equal prefixes count ones before zeros, then split stably
import sys


def main():
    data = sys.stdin.buffer.read().split()
    low = -99999
    groups = [[int(x) - low for x in data[1:]]]
    total = 0
    for bit in range(17, -1, -1):
        mask = 1 << bit
        following = []
        for group in groups:
            zeros, ones = [], []
            for x in group:
                if x & mask:
                    ones.append(x)
                else:
                    zeros.append(x)
                    total += len(ones)
            if len(zeros) > 1:
                following.append(zeros)
            if len(ones) > 1:
                following.append(ones)
        groups = following
    print(total)


main()
