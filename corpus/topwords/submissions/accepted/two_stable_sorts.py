# alphabetical sort first, then a stable sort by count
import sys
from operator import itemgetter


def words_of(line):
    return "".join(c if c.isalpha() else " " for c in line.lower()).split()


def main():
    lines = sys.stdin.readlines()
    k = int(lines[0].split()[1])
    table = {}
    for line in lines[1:]:
        if line.rstrip("\n") != "#":
            for w in words_of(line):
                table[w] = table.get(w, 0) + 1
            continue
        ranking = sorted(table.items())
        ranking.sort(key=itemgetter(1), reverse=True)
        print(" ".join("%s:%d" % pair for pair in ranking[:k]) or "-")


main()
