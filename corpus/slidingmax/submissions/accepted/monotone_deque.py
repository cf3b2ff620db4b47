# monotone deque of indices
from collections import deque


def window_sum(arr, k):
    dq = deque()
    s = 0
    for i in range(len(arr)):
        while dq and arr[dq[-1]] <= arr[i]:
            dq.pop()
        dq.append(i)
        if dq[0] <= i - k:
            dq.popleft()
        if i + 1 >= k:
            s += arr[dq[0]]
    return s


n, q = [int(x) for x in input().split()]
arr = [int(x) for x in input().split()]
ks = [int(x) for x in input().split()]
for k in ks:
    print(window_sum(arr, k))
