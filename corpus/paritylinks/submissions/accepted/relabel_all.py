# a label and a side for every switch; a join walks over all switches
n, m = map(int, input().split())
label = list(range(n + 1))
side = [0] * (n + 1)
refused = []
for number in range(1, m + 1):
    i, j, b = map(int, input().split())
    if label[i] != label[j]:
        turn = side[i] ^ side[j] ^ b
        old, new = label[j], label[i]
        for v in range(1, n + 1):
            if label[v] == old:
                label[v] = new
                side[v] ^= turn
    elif side[i] ^ side[j] != b:
        refused.append(number)
print(len(refused), sum(refused))
