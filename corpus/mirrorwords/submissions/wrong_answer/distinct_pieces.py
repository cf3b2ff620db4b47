# counts palindromes that read the same only once
import sys

for s in sys.stdin.read().split()[1:]:
    seen = set()
    ends = []
    for j, ch in enumerate(s):
        ends = [i - 1 for i in ends if i and s[i - 1] == ch] + [j]
        seen.update(s[i : j + 1] for i in ends)
        ends.append(j + 1)
    print(len(seen), max(map(len, seen)))
