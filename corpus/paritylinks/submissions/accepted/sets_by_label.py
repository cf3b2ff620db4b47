# two sets for each group, one a side; joining makes new sets
n, m = map(int, input().split())
sides = {v: ({v}, set()) for v in range(1, n + 1)}
count = 0
total = 0
for number in range(1, m + 1):
    i, j, b = (int(t) for t in input().split())
    alike, other = sides[i]
    if j in alike:
        bad = b == 1
    elif j in other:
        bad = b == 0
    else:
        bad = False
        alike2, other2 = sides[j]
        if b:
            alike2, other2 = other2, alike2
        first = alike | alike2
        second = other | other2
        for v in first:
            sides[v] = (first, second)
        for v in second:
            sides[v] = (second, first)
    if bad:
        count += 1
        total += number
print(count, total)
