# plays every minute over the whole field
import sys

data = sys.stdin.read().split()
w = int(data[1])
field = ["#" * (w + 2)] + ["#" + row + "#" for row in data[2:]] + ["#" * (w + 2)]
t = 0
while True:
    nxt = [field[0]]
    for i in range(1, len(field) - 1):
        up, row, down = field[i - 1], field[i], field[i + 1]
        out = ["#"]
        for j in range(1, w + 1):
            ch = row[j]
            if ch == "." and (row[j - 1] == "F" or row[j + 1] == "F" or up[j] == "F" or down[j] == "F"):
                ch = "F"
            out.append(ch)
        out.append("#")
        nxt.append("".join(out))
    nxt.append(field[-1])
    if nxt == field:
        break
    field = nxt
    t += 1
print(t, sum(row.count(".") for row in field))
