# recursion over pieces with a cache; long words are too deep
import sys
from functools import lru_cache

sys.setrecursionlimit(250)


def solve(s):
    @lru_cache(maxsize=None)
    def mirror(i, j):
        return j <= i or (s[i] == s[j] and mirror(i + 1, j - 1))

    sizes = [j - i + 1 for i in range(len(s)) for j in range(len(s) - 1, i - 1, -1) if mirror(i, j)]
    return len(sizes), max(sizes)


for word in sys.stdin.read().split()[1:]:
    print(*solve(word))
