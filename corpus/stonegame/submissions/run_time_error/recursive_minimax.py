# recursive minimax with a cache, asked from the top
from functools import lru_cache

for _ in range(int(input())):
    n, k, *moves = map(int, input().split())

    @lru_cache(maxsize=None)
    def wins(heap):
        return any(heap >= s and not wins(heap - s) for s in moves)

    answer = "first" if wins(n) else "second"
    lost = [h for h in range(n + 1) if not wins(h)]
    print(len(lost), lost[-1], answer)
