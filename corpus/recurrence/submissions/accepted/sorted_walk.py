# offline: sort the questions and walk once, keeping only two numbers
import sys


def main():
    read = sys.stdin.readline
    a, b, m, old, new = map(int, read().split())
    q = int(read())
    asked = [int(read()) for _ in range(q)]
    answer = {}
    at = 0
    for n in sorted(set(asked)):
        for _ in range(n - at):
            old, new = new, (a * new + b * old) % m
        at = n
        answer[n] = old
    for n in asked:
        print(answer[n])


main()
