"""Inputs of stonegame: heaps and sets of moves. Inputs only, never answers."""

import random
from collections.abc import Iterator

SEED = 41005
Rule = tuple[int, list[int]]


def render(rules: list[Rule]) -> str:
    """Returns the input text of one test."""
    lines = [str(len(rules))]
    lines += [" ".join(map(str, [heap, len(moves), *moves])) for heap, moves in rules]
    return "\n".join(lines) + "\n"


def random_rule(rng: random.Random, *, k: int, top: int, heap: int) -> Rule:
    """Returns a rule of k moves from 1..top and a heap near `heap`."""
    return rng.randint(heap - heap // 8, heap), [rng.randint(1, top) for _ in range(k)]


def correctness() -> Iterator[tuple[str, list[Rule]]]:
    """Yields (name, rules) of the small tests."""
    rng = random.Random(SEED)
    yield "01-smallest", [(1, [1]), (1, [2]), (2, [1]), (2, [2]), (3, [2])]
    yield "02-one-move", [(n, [3]) for n in range(1, 14)]
    yield "03-one-to-k", [(n, [1, 2, 3, 4]) for n in range(1, 16)]
    yield "04-no-move-fits", [(5, [9]), (399, [400, 400]), (20, [30, 25, 21])]
    yield "05-repeated-unsorted", [(30, [5, 2, 5, 2]), (41, [7, 1, 1]), (50, [6, 6, 6])]
    yield "06-two-moves", [(100, [a, b]) for a, b in ((1, 4), (2, 3), (2, 7), (3, 8), (4, 6), (5, 13))]
    yield "07-even-moves", [(61, [2, 4, 8]), (60, [2, 6]), (77, [4, 6, 10, 12])]
    yield "08-greedy-fails", [(25, [1, 3, 4]), (26, [1, 5, 6]), (27, [2, 3, 7]), (9, [1, 3, 4]), (14, [1, 7, 10])]
    yield "09-late-period", [(700, [2, 5, 7, 23]), (900, [3, 11, 19, 41]), (500, [1, 8, 30, 35])]
    yield "10-random-small", [random_rule(rng, k=rng.randint(1, 4), top=12, heap=60) for _ in range(20)]
    yield "11-random-middle", [random_rule(rng, k=rng.randint(2, 8), top=90, heap=500) for _ in range(12)]
    yield "12-deep", [(3000, [1]), (2999, [1, 2]), (2500, [2, 3])]


def optimization() -> Iterator[tuple[str, list[Rule]]]:
    """Yields (name, rules) of the large tests; the sum of the heaps grows by about 1.5 a test."""
    for i in range(9):
        rng = random.Random(SEED + 100 + i)
        count, heap = round(20 * 1.355**i), round(1400 * 1.14**i)
        rules = [random_rule(rng, k=rng.randint(4, 7), top=rng.choice((60, 90, 120)), heap=heap) for _ in range(count)]
        yield f"{i + 1:02d}-g{count}-heap{heap}", rules


def cases() -> Iterator[tuple[str, str]]:
    """Yields (path below data/ without suffix, input text) of every test."""
    yield "sample/1", render([(10, [1, 2, 3]), (6, [2, 5]), (4, [9])])
    for name, rules in correctness():
        yield f"secret/correctness/{name}", render(rules)
    for name, rules in optimization():
        yield f"secret/optimization/{name}", render(rules)
