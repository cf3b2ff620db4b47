# picks the best word k times with max()
import sys


def split(line):
    for c in set(line):
        if not c.isalpha():
            line = line.replace(c, " ")
    return line.lower().split()


def board(count, k):
    """The k best words, one scan over all the rest for each."""
    rest = dict(count)
    shown = []
    for _ in range(k):
        if not rest:
            break
        most = max(rest.values())
        word = min(w for w in rest if rest[w] == most)
        shown.append(f"{word}:{most}")
        del rest[word]
    return " ".join(shown) or "-"


def main():
    total, k = map(int, sys.stdin.readline().split())
    count = {}
    for _ in range(total):
        line = sys.stdin.readline().strip()
        if line == "#":
            print(board(count, k))
        else:
            for word in split(line):
                count[word] = count.get(word, 0) + 1


main()
