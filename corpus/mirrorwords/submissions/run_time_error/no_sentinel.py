# expands without looking at the right end of the word
import sys

for s in sys.stdin.read().split()[1:]:
    total = best = 0
    for c in range(len(s)):
        for r in (c, c + 1):
            l = c
            while l >= 0 and s[l] == s[r]:
                total += 1
                best = max(best, r - l + 1)
                l -= 1
                r += 1
    print(total, best)
