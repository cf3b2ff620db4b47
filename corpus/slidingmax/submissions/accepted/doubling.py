# sparse table: maxima of windows of length 1, 2, 4, ... shared by all queries
import sys

read = sys.stdin.readline
n, q = map(int, read().split())
level = [list(map(int, read().split()))]
half = 1
while 2 * half <= n and half < 2048:
    row = level[-1]
    level.append(list(map(max, row, row[half:])))
    half *= 2
for k in map(int, read().split()):
    j = k.bit_length() - 1
    row = level[j]
    print(sum(map(max, row, row[k - (1 << j):])))
