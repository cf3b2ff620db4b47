# two pointers that move on by one after a hit, so runs of equals are lost
n, q = map(int, input().split())
a = sorted(int(input()) for _ in range(n))
for _ in range(q):
    kind, x = input().split()
    x = int(x)
    total = 0
    if kind == "s":
        i, j = 0, n - 1
        while i < j:
            s = a[i] + a[j]
            if s == x:
                total += 1
                i += 1
                j -= 1
            elif s < x:
                i += 1
            else:
                j -= 1
    else:
        i, j = 0, 1
        while j < n:
            if a[j] - a[i] == x:
                total += 1
                j += 1
            elif a[j] - a[i] < x:
                j += 1
            else:
                i += 1
                j = max(j, i + 1)
    print(total)
