# cuts out every piece and turns it round letter by letter
import sys


def is_mirror(piece):
    return "".join(reversed(piece)) == piece


for s in sys.stdin.read().split()[1:]:
    count = longest = 0
    for i in range(len(s)):
        for j in range(i + 1, len(s) + 1):
            if is_mirror(s[i:j]):
                count += 1
                longest = max(longest, j - i)
    print(count, longest)
