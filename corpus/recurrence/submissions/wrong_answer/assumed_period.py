# fast: believes that every rule repeats within 1500 steps
import sys

data = sys.stdin.read().split()
a, b, m, x0, x1 = map(int, data[:5])
x = [x0, x1]
while len(x) < 1500:
    x.append((a * x[-1] + b * x[-2]) % m)
period = 1
while period < 1400 and x[period : period + 2] != x[:2]:
    period += 1
print("\n".join([str(x[int(word) % period]) for word in data[6:]]))
