# one integer mask a row; only rows near the front are worked on each minute
import sys


def main():
    data = sys.stdin.read().split()
    r = int(data[0])
    rows = data[2:]
    to_grass = str.maketrans("#.F", "010")
    to_fire = str.maketrans("#.F", "001")
    grass = [0] + [int(row.translate(to_grass), 2) for row in rows] + [0]
    front = {i: int(row.translate(to_fire), 2) for i, row in enumerate(rows, 1) if "F" in row}
    minute = 0
    while True:
        touched = {}
        for i, f in front.items():
            touched[i] = touched.get(i, 0) | f << 1 | f >> 1
            touched[i - 1] = touched.get(i - 1, 0) | f
            touched[i + 1] = touched.get(i + 1, 0) | f
        front = {}
        for i, mask in touched.items():
            new = mask & grass[i] if 0 < i <= r else 0
            if new:
                grass[i] ^= new
                front[i] = new
        if not front:
            break
        minute += 1
    print(minute, sum(g.bit_count() for g in grass))


main()
