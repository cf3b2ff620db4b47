# table from below, sorted moves, a loop that stops at the first good move
import sys


def play(n, moves):
    moves = sorted(set(moves))
    win = [0] * (n + 1)
    count = last = 0
    for heap in range(n + 1):
        for s in moves:
            if s > heap:
                break
            if not win[heap - s]:
                win[heap] = 1
                break
        if not win[heap]:
            count += 1
            last = heap
    return count, last, win[n]


def main():
    read = sys.stdin.readline
    for _ in range(int(read())):
        numbers = list(map(int, read().split()))
        count, last, w = play(numbers[0], numbers[2:])
        print(count, last, "first" if w else "second")


main()
