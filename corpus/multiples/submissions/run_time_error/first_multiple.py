# puts the first multiple by hand and steps from there, even where it lies beyond the street
for _ in range(int(input())):
    ds = list(map(int, input().split()))[1:]
    ns = list(map(int, input().split()))[1:]
    out = []
    for n in ns:
        street = [0] * (n + 1)
        for d in ds:
            street[d] = d
            street[2 * d::d] = range(2 * d, n + 1, d)
        out.append(sum(street))
    print(*out)
