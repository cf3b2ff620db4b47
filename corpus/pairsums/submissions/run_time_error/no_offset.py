# counting array that takes numbers as indices: far negative ones fall out of it
import sys

tokens = sys.stdin.read().split()
n = int(tokens[0])
a = list(map(int, tokens[2 : n + 2]))
size = max(a) + 1
cnt = [0] * size
for v in a:
    cnt[v] += 1
for kind, word in zip(tokens[n + 2 :: 2], tokens[n + 3 :: 2]):
    x = int(word)
    if kind == "s":
        print((sum(cnt[x - v] for v in a if x - v < size) - sum(2 * v == x for v in a)) // 2)
    elif x:
        print(sum(cnt[v + x] for v in a if v + x < size))
    else:
        print((sum(cnt[v] for v in a) - n) // 2)
