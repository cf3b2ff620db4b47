# remember where the maximum is, rescan the window only when it has left
def crest_sum(a, k):
    total = 0
    where = -1
    for right in range(k - 1, len(a)):
        left = right - k + 1
        if where < left:
            where = left
            for j in range(left + 1, right + 1):
                if a[j] >= a[where]:
                    where = j
        elif a[right] >= a[where]:
            where = right
        total += a[where]
    return total


def main():
    n, q = map(int, input().split())
    heights = [int(t) for t in input().split()]
    for k in input().split():
        print(crest_sum(heights, int(k)))


main()
