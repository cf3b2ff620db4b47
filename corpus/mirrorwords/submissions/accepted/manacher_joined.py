# Manacher on the word with separators
def solve(word):
    s = "^#" + "#".join(word) + "#$"
    p = [0] * len(s)
    centre = right = 0
    for i in range(1, len(s) - 1):
        if i < right:
            p[i] = min(right - i, p[2 * centre - i])
        while s[i + p[i] + 1] == s[i - p[i] - 1]:
            p[i] += 1
        if i + p[i] > right:
            centre, right = i, i + p[i]
    return sum((x + 1) // 2 for x in p), max(p)


for _ in range(int(input())):
    print(*solve(input()))
