# input() per line, a plain dict of counts, one pass over the dict a question


def pairs_with_sum(count, x):
    total = 0
    for value, times in count.items():
        other = x - value
        if other > value and other in count:
            total += times * count[other]
        elif other == value:
            total += times * (times - 1) // 2
    return total


def pairs_with_difference(count, x):
    if x == 0:
        return sum(times * (times - 1) // 2 for times in count.values())
    total = 0
    for value, times in count.items():
        if value + x in count:
            total += times * count[value + x]
    return total


n, q = map(int, input().split())
count = {}
for _ in range(n):
    a = int(input())
    if a in count:
        count[a] += 1
    else:
        count[a] = 1
for _ in range(q):
    kind, x = input().split()
    if kind == "s":
        print(pairs_with_sum(count, int(x)))
    else:
        print(pairs_with_difference(count, int(x)))
