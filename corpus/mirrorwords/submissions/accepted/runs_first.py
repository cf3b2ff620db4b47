# expands around runs of equal letters with whole slices, jumps over each run
import sys
from os.path import commonprefix


def solve(s):
    n = len(s)
    back = s[::-1]
    total = 0
    best = 1
    i = 0
    while i < n:
        j = i + 1
        while j < n and s[j] == s[i]:
            j += 1
        size = j - i
        # centres inside the run, off its middle, stop at the run's border
        total += size * (size + 1) // 2
        reach = min(i, n - j)
        if reach and s[j] == s[i - 1]:
            step = 1
            while step < reach and s[j : j + step * 2] == back[n - i : n - i + step * 2] and step * 2 <= reach:
                step *= 2
            wide = min(reach, step * 2)
            arm = len(commonprefix([s[j : j + wide], back[n - i : n - i + wide]]))
            total += arm
            size += 2 * arm
        best = max(best, size)
        i = j
    return total, best


for word in sys.stdin.read().split()[1:]:
    print(*solve(word))
