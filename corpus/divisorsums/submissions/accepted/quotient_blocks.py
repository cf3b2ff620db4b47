# walks the blocks of equal quotients n // d, no square root needed
from functools import lru_cache


@lru_cache(maxsize=None)
def upto(n):
    ans = 0
    d = 1
    while d <= n:
        q = n // d
        e = n // q
        ans += q * (d + e) * (e - d + 1) // 2
        d = e + 1
    return ans


for _ in range(int(input())):
    l, r = map(int, input().split())
    print(upto(r) - upto(l - 1))
