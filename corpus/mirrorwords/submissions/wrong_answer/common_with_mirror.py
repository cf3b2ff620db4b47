# longest common piece of the word and its mirror: need not be a palindrome
import sys

for s in sys.stdin.read().split()[1:]:
    back = s[::-1]
    longest = 1
    total = 0
    for i in range(len(s)):
        size = longest
        while i + size <= len(s) and s[i : i + size] in back:
            longest = size
            size += 1
        total += 1
        for odd in (0, 1):
            k = 1
            while i - k + odd >= 0 and s[i - k + odd : i + k + 1] == back[len(s) - i - k - 1 : len(s) - i + k - odd]:
                if i + k >= len(s):
                    break
                total += 1
                k += 1
    print(total, longest)
