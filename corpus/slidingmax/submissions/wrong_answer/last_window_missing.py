# slice maximum, but the range stops one window early
n, q = map(int, input().split())
a = list(map(int, input().split()))
for k in map(int, input().split()):
    print(sum(max(a[i:i + k]) for i in range(n - k)))
