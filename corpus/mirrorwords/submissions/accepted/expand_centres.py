# expands around every letter and every gap
import sys


def expand(s, left, right):
    found = 0
    while left >= 0 and right < len(s) and s[left] == s[right]:
        found += 1
        left -= 1
        right += 1
    return found, right - left - 1


def main():
    t = int(sys.stdin.readline())
    for _ in range(t):
        s = sys.stdin.readline().strip()
        total = 0
        best = 1
        for centre in range(len(s)):
            for other in (centre, centre + 1):
                found, size = expand(s, centre, other)
                total += found
                best = max(best, size) if found else best
        print(total, best)


main()
