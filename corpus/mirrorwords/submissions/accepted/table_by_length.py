# full table of "is a palindrome", filled by increasing length
def solve(s):
    n = len(s)
    pal = [[False] * n for _ in range(n)]
    count = 0
    longest = 0
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            if s[i] == s[j] and (length < 3 or pal[i + 1][j - 1]):
                pal[i][j] = True
                count += 1
                longest = length
    return count, longest


for _ in range(int(input())):
    print(*solve(input()))
