# finds the k-th largest count first, then sorts just the words that reach it
import re
import sys


def top(count, k):
    if not count:
        return "-"
    values = sorted(count.values())
    limit = values[-k] if len(values) >= k else 1
    chosen = [(-c, w) for w, c in count.items() if c >= limit]
    chosen.sort()
    return " ".join([w + ":" + str(-c) for c, w in chosen[:k]])


def main():
    total, k = map(int, sys.stdin.readline().split())
    count = {}
    for part in sys.stdin.read().lower().split("#\n")[:-1]:
        for w in re.findall("[a-z]+", part):
            count[w] = count.get(w, 0) + 1
        print(top(count, k))


main()
