# for each position the list of palindromes ending there, made from the ones before
import sys


def main():
    words = sys.stdin.read().split()[1:]
    for word in words:
        s = "#" + word
        starts = []
        total = 0
        best = 1
        previous = []
        for j in range(1, len(s)):
            ch = s[j]
            # starts of palindromes that end at j, the longest first
            starts = [i - 1 for i in previous if s[i - 1] == ch]
            starts.append(j)
            total += len(starts)
            if j - starts[0] + 1 > best:
                best = j - starts[0] + 1
            # the empty piece between j and j + 1 starts at j + 1
            previous = starts + [j + 1]
        print(total, best)


main()
