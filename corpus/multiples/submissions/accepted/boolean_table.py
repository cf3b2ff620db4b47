# table of booleans for each team, filled by index loops, then one running sum
import sys
input = sys.stdin.readline

T = int(input())
for t in range(T):
    D = list(map(int, input().split()))[1:]
    Q = list(map(int, input().split()))[1:]
    top = max(Q)
    lit = [False] * (top + 1)
    for d in D:
        x = d
        while x <= top:
            lit[x] = True
            x += d
    acc = [0] * (top + 1)
    for x in range(1, top + 1):
        acc[x] = acc[x - 1] + (x if lit[x] else 0)
    print(" ".join(str(acc[n]) for n in Q))
