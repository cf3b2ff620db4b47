# two pointers over the sorted different numbers and their counts
import sys


def main():
    n, q = map(int, sys.stdin.readline().split())
    runs = []
    for a in sorted(int(sys.stdin.readline()) for _ in range(n)):
        if runs and runs[-1][0] == a:
            runs[-1][1] += 1
        else:
            runs.append([a, 1])
    for _ in range(q):
        kind, x = sys.stdin.readline().split()
        x = int(x)
        total = 0
        if kind == "s":
            i, j = 0, len(runs) - 1
            while i < j:
                s = runs[i][0] + runs[j][0]
                if s == x:
                    total += runs[i][1] * runs[j][1]
                    i += 1
                    j -= 1
                elif s < x:
                    i += 1
                else:
                    j -= 1
            if i == j and 2 * runs[i][0] == x:
                total += runs[i][1] * (runs[i][1] - 1) // 2
        elif x == 0:
            total = sum(c * (c - 1) // 2 for _, c in runs)
        else:
            i = 0
            for value, c in runs:
                while runs[i][0] < value - x:
                    i += 1
                if runs[i][0] == value - x:
                    total += c * runs[i][1]
        print(total)


main()
