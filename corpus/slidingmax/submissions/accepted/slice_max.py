# built-in max over a slice of every window
n, q = map(int, input().split())
a = list(map(int, input().split()))
for k in map(int, input().split()):
    print(sum(max(a[i:i + k]) for i in range(n - k + 1)))
