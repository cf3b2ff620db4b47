# looks at every pair
def main():
    n = int(input())
    t = list(map(int, input().split()))
    quarrels = 0
    for i in range(n):
        mine = t[i]
        for other in t[i + 1:]:
            if mine > other:
                quarrels += 1
    print(quarrels)


main()
