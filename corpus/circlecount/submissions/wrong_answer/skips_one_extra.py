# simulation that also skips the child after the one who left
import sys

data = sys.stdin.read().split()
for i in range(1, len(data), 3):
    n, k, q = int(data[i]), int(data[i + 1]), int(data[i + 2])
    people = list(range(1, n + 1))
    at = k - 1
    for _ in range(q):
        at %= len(people)
        out = people.pop(at)
        at += k
    print(out)
