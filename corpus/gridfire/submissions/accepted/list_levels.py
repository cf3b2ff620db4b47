# level lists of row and column, burnt cells overwritten in lists of characters
import sys


def neighbours(i, j):
    yield i + 1, j
    yield i - 1, j
    yield i, j + 1
    yield i, j - 1


def main():
    lines = sys.stdin.readlines()
    _, c = map(int, lines[0].split())
    field = [["#"] * (c + 2)]
    for line in lines[1:]:
        field.append(["#", *line.strip(), "#"])
    field.append(["#"] * (c + 2))
    level = [(i, j) for i, row in enumerate(field) for j, ch in enumerate(row) if ch == "F"]
    t = 0
    while level:
        nxt = []
        for cell in level:
            for i, j in neighbours(*cell):
                if field[i][j] == ".":
                    field[i][j] = "F"
                    nxt.append((i, j))
        level = nxt
        t += 1
    print(max(0, t - 1), sum(row.count(".") for row in field))


main()
