# backward recurrence that divides only when the position really wraps
from sys import stdin


def main():
    answers = []
    for _ in range(int(stdin.readline())):
        n, k, q = map(int, stdin.readline().split())
        size = n - q + 1
        p = (k - 1) % size
        size += 1
        while size <= n:
            p += k
            if p >= size:
                p %= size
            size += 1
        answers.append(p + 1)
    print(*answers, sep="\n")


main()
