# sets of cell numbers: shift the front four ways and keep what is still green
import sys

rows = sys.stdin.read().split()
r, c = int(rows[0]), int(rows[1])
line = "#".join(rows[2:])
w = c + 1
green = {i for i, ch in enumerate(line) if ch == "."}
front = {i for i, ch in enumerate(line) if ch == "F"}
t = 0
while True:
    reach = {p + 1 for p in front} | {p - 1 for p in front} | {p + w for p in front} | {p - w for p in front}
    front = reach & green
    if not front:
        break
    green -= front
    t += 1
print(t, len(green))
