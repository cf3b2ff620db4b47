# queue made of two stacks, each of which knows its maximum
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, q = data[0], data[1]
    heights = data[2:2 + n]
    out = []
    for k in data[2 + n:2 + n + q]:
        front = []
        back_max = -1
        start = 0
        total = 0
        for i in range(n):
            h = heights[i]
            if h > back_max:
                back_max = h
            if i < k - 1:
                continue
            if not front:
                best = -1
                for j in range(i, start - 1, -1):
                    if heights[j] > best:
                        best = heights[j]
                    front.append(best)
                start = i + 1
                back_max = -1
            top = front.pop()
            total += top if top > back_max else back_max
        out.append(total)
    print("\n".join(map(str, out)))


main()
