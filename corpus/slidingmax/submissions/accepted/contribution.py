# every height counts how many windows of each length it tops: one stack pass, then second differences over k
import sys
from itertools import accumulate


def main():
    data = sys.stdin.buffer.read().split()
    n = int(data[0])
    a = list(map(int, data[2:n + 2]))
    # with l and r places to the left and right border, height v tops
    # min(k, l, r, l + r - k) windows of length k: a trapezoid in k
    bend = [0] * (n + 3)
    stack = []
    push = stack.append
    pop = stack.pop
    left_of = -1
    total = 0
    for i, v in enumerate(a):
        while stack and a[stack[-1]] <= v:
            j = pop()
            before = stack[-1] if stack else -1
            w = a[j]
            bend[j - before] -= w
            bend[i - j] -= w
            bend[i - before] += w
        push(i)
    while stack:
        j = pop()
        before = stack[-1] if stack else -1
        w = a[j]
        bend[j - before] -= w
        bend[n - j] -= w
        bend[n - before] += w
    slope = sum(a)
    value = list(accumulate([0, slope, *bend[1:]], initial=0))
    value = list(accumulate(value[1:]))
    print("\n".join(str(value[int(k)]) for k in data[n + 2:]))


main()
