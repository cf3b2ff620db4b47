# takes the first day and then every day that is higher than all before
import sys

nums = list(map(int, sys.stdin.buffer.read().split()))
for p in range(1, len(nums), 5):
    n, x, a, b, m = nums[p : p + 5]
    top = -1
    count = 0
    for _ in range(n):
        if x > top:
            top = x
            count += 1
        x = (a * x + b) % m
    print(count)
