# expands around letters only and forgets the gaps
import sys

for s in sys.stdin.read().split()[1:]:
    total = best = 0
    for c in range(len(s)):
        k = 0
        while c - k >= 0 and c + k < len(s) and s[c - k] == s[c + k]:
            k += 1
        total += k
        best = max(best, 2 * k - 1)
    print(total, best)
