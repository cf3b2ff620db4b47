# the recurrence as a recursive function: too deep for a long game


def seat(n, k, q):
    if q == 1:
        return (k - 1) % n
    return (seat(n - 1, k, q - 1) + k) % n


for _ in range(int(input())):
    n, k, q = map(int, input().split())
    print(seat(n, k, q) + 1)
