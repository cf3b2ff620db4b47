# union-find with parity, hung wherever it comes, paths never shortened
import sys
input = sys.stdin.readline


def main():
    n, m = map(int, input().split())
    up = [0] * (n + 1)
    par = [0] * (n + 1)
    cnt = s = 0
    for k in range(1, m + 1):
        x, y, b = map(int, input().split())
        while up[x]:
            b ^= par[x]
            x = up[x]
        while up[y]:
            b ^= par[y]
            y = up[y]
        if x != y:
            up[x] = y
            par[x] = b
        elif b:
            cnt += 1
            s += k
    print(cnt, s)


main()
