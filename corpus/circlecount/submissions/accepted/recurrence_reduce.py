# functional style: the recurrence folded over the growing circle
from functools import reduce

for _ in range(int(input())):
    n, k, q = (int(word) for word in input().split())
    alone = n - q + 1
    print(1 + reduce(lambda seat, circle: (seat + k) % circle, range(alone + 1, n + 1), (k - 1) % alone))
