# textbook dynamic programme, max() over a generator for every day
def heights(n, s, a, b, m):
    result = []
    for _ in range(n):
        result.append(s)
        s = (a * s + b) % m
    return result


def longest(xs):
    best = []
    for i in range(len(xs)):
        best.append(1 + max((best[j] for j in range(i) if xs[j] < xs[i]), default=0))
    return max(best)


for _ in range(int(input())):
    print(longest(heights(*map(int, input().split()))))
