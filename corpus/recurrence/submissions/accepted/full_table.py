# write down all numbers up to the largest question, then look them up
import sys

tokens = sys.stdin.read().split()
a, b, m, x0, x1 = map(int, tokens[:5])
asked = [int(t) for t in tokens[6:]]
x = [x0, x1]
for _ in range(max(asked)):
    x.append((a * x[-1] + b * x[-2]) % m)
for n in asked:
    print(x[n])
