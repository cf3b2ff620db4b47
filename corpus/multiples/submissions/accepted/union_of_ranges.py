# a set filled from one range a divisor, for every length anew
g = int(input())
for _ in range(g):
    divisors = set(map(int, input().split()[1:]))
    lengths = list(map(int, input().split()[1:]))
    row = []
    for n in lengths:
        lit = set()
        for d in divisors:
            lit.update(range(d, n + 1, d))
        row.append(sum(lit))
    print(*row)
