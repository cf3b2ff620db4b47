# counts only runs of equal letters
import sys
from itertools import groupby

out = []
for s in sys.stdin.read().split()[1:]:
    sizes = [len(list(g)) for _, g in groupby(s)]
    out.append(f"{sum(k * (k + 1) // 2 for k in sizes)} {max(sizes)}")
print("\n".join(out))
