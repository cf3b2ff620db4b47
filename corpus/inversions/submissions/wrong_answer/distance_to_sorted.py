# adds up how far each person stands from the sorted place, halved
n = int(input())
a = list(map(int, input().split()))
order = sorted(range(n), key=lambda i: a[i])
print(sum(abs(i - p) for p, i in enumerate(order)) // 2)
