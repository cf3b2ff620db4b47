# the definition: try each height of a window until one is found that no other exceeds
n, q = map(int, input().split())
a = list(map(int, input().split()))
for k in map(int, input().split()):
    s = 0
    for i in range(n - k + 1):
        window = a[i:i + k]
        for x in window:
            if all(y <= x for y in window):
                s += x
                break
    print(s)
