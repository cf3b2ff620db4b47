# GF(2) elimination on big integers: bit 0 is b, bit v is switch v, pivots by the highest bit; rows met on the way are shortened
import sys


def main():
    rows = sys.stdin.read().split("\n")
    n, m = map(int, rows[0].split())
    pivot = {}
    refused = []
    for k in range(1, m + 1):
        i, j, b = map(int, rows[k].split())
        vector = (1 << i) ^ (1 << j) ^ b
        trail = []
        while vector > 1:
            top = vector.bit_length()
            if top not in pivot:
                pivot[top] = vector
                break
            trail.append(top)
            vector ^= pivot[top]
        else:
            if vector:
                refused.append(k)
        # what was met on the way jumps ahead next time
        if vector > 1:
            for t in trail:
                low = pivot[t] ^ (1 << t - 1)
                if low.bit_length() == vector.bit_length():
                    pivot[t] ^= vector
    print(len(refused), sum(refused))


main()
