# one row of the table at a time, from the last letter to the first
import sys


def main():
    t, *words = sys.stdin.read().split()
    for s in words:
        n = len(s)
        row = []
        total = best = 0
        for i in range(n - 1, -1, -1):
            ch = s[i]
            # row[k] says whether s[i + 1 : i + 1 + k] is a palindrome
            new = [True, True]
            for k in range(n - i - 1):
                new.append(row[k] and s[i + k + 1] == ch)
            row = new
            total += sum(row) - 1
            length = len(row) - 1
            while not row[length]:
                length -= 1
            if length > best:
                best = length
        print(total, best)


main()
