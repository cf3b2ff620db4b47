# inclusion-exclusion with products in place of least common multiples
from itertools import combinations
from math import prod

for _ in range(int(input())):
    ds = sorted(set(map(int, input().split()[1:])))
    ns = list(map(int, input().split()[1:]))
    terms = [((-1) ** (r + 1), prod(c)) for r in range(1, len(ds) + 1) for c in combinations(ds, r)]
    print(*[sum(s * p * (n // p) * (n // p + 1) // 2 for s, p in terms) for n in ns])
