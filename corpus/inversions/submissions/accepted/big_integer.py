# one big integer remembers who has come; shift and bit_count say how many hold more
n = int(input())
t = [int(x) for x in input().split()]
order = sorted(range(n), key=lambda i: (t[i], i))
position = [0] * n
for p, i in enumerate(order):
    position[i] = p
present = 0
answer = 0
for p in position:
    answer += (present >> p).bit_count()
    present |= 1 << p
print(answer)
