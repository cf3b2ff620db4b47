# Manacher twice, for odd and even pieces, on the bare word
import sys


def radii(s, even):
    n = len(s)
    d = [0] * n
    left, right = 0, -1
    for i in range(n):
        k = 1 - even if i > right else min(d[left + right - i + even], right - i + 1)
        while k <= i - even and i + k < n and s[i + k] == s[i - k - even]:
            k += 1
        d[i] = k
        if i + k - 1 > right:
            left, right = i - k + 1 - even, i + k - 1
    return d


def main():
    answers = []
    for s in sys.stdin.read().split()[1:]:
        odd = radii(s, 0)
        even = radii(s, 1)
        answers.append((sum(odd) + sum(even), max(2 * max(odd) - 1, 2 * max(even))))
    for a in answers:
        print(*a)


main()
