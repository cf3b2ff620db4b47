# backward recurrence, but all steps without a wrap are done in one jump
import sys


def leaver(n, k, q):
    if k == 1:
        return q
    size = n - q + 1
    pos = (k - 1) % size
    while size < n:
        jump = (size - 1 - pos) // (k - 1)
        if jump == 0:
            size += 1
            pos = (pos + k) % size
        else:
            jump = min(jump, n - size)
            size += jump
            pos += jump * k
    return pos + 1


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    it = iter(data[1:])
    print("\n".join(str(leaver(n, k, q)) for n, k, q in zip(it, it, it)))


main()
