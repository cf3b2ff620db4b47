# subtracts the length only once, so a large step runs past the end
import sys

sys.stdin.readline()
for line in sys.stdin:
    n, k, q = map(int, line.split())
    people = list(range(1, n + 1))
    at = 0
    for _ in range(q):
        at += k - 1
        if at >= len(people):
            at -= len(people)
        out = people.pop(at)
    print(out)
