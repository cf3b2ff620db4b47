# inclusion-exclusion over bit masks, the least common multiples computed for every query
from math import lcm


def triangle(k):
    return k * (k + 1) // 2


def lit(divisors, n):
    total = 0
    for mask in range(1, 1 << len(divisors)):
        chosen = [d for i, d in enumerate(divisors) if mask >> i & 1]
        step = lcm(*chosen)
        part = step * triangle(n // step)
        total += part if len(chosen) % 2 else -part
    return total


for _ in range(int(input())):
    divisors = list(map(int, input().split()))[1:]
    lengths = list(map(int, input().split()))[1:]
    print(*[lit(divisors, n) for n in lengths])
