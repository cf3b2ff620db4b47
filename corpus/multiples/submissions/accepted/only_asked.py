# one bytearray a team, summed in pieces between the asked lengths
import sys
from itertools import compress


def answers(divisors, lengths):
    top = max(lengths)
    marks = bytearray(top + 1)
    for d in divisors:
        if d <= top:
            marks[d::d] = bytes([1]) * (top // d)
    houses = range(top + 1)
    known, before, total = {0: 0}, 0, 0
    for n in sorted(set(lengths)):
        total += sum(compress(houses[before + 1:n + 1], marks[before + 1:n + 1]))
        known[n] = total
        before = n
    return [known[n] for n in lengths]


data = sys.stdin.buffer.readlines()
for top, bottom in zip(data[1::2], data[2::2]):
    _, *divisors = map(int, top.split())
    _, *lengths = map(int, bottom.split())
    print(*answers(divisors, lengths))
