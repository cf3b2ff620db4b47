# keeps the children, not positions: every removal searches the list twice
import sys


def play(n, k, q):
    people = list(range(1, n + 1))
    current = people[0]
    for _ in range(q):
        i = (people.index(current) + k - 1) % len(people)
        out = people[i]
        current = people[(i + 1) % len(people)]
        people.remove(out)
    return out


lines = sys.stdin.readlines()
for line in lines[1:]:
    print(play(*map(int, line.split())))
