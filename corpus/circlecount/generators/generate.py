"""Input files of the counting-out problem.

Here live the test cases as text, made from a fixed seed. No answers, no clock,
no file access: the caller decides where the text goes.
"""

from collections.abc import Iterator
from random import Random

SEED = 20260107
Game = tuple[int, int, int]


def text(games: list[Game]) -> str:
    """One input file for the given (n, k, q) games."""
    return "".join([f"{len(games)}\n", *(f"{n} {k} {q}\n" for n, k, q in games)])


def small(seed: int, *, count: int, largest: int, step: int) -> list[Game]:
    """Random games with n up to `largest` and k up to `step`."""
    rng = Random(SEED + seed)
    sizes = [rng.randint(1, largest) for _ in range(count)]
    return [(n, rng.randint(1, step), rng.randint(1, n)) for n in sizes]


def heavy(seed: int, *, total: int, largest: int) -> list[Game]:
    """Games near `largest` children, about `total` children in all."""
    rng = Random(SEED + seed)
    games: list[Game] = []
    while total > 0:
        n = min(rng.randint(largest * 3 // 4, largest), total)
        k = rng.randint(20, 120) if rng.random() < 0.96 else rng.randint(10**6, 10**9)
        games.append((n, k, n if rng.random() < 0.3 else rng.randint(n * 3 // 4 + 1, n)))
        total -= n
    return games


def correctness() -> Iterator[tuple[str, list[Game]]]:
    """The small tests: edges, orders, huge steps, long games."""
    yield "01-one-child", [(1, 1, 1), (1, 2, 1), (1, 10**9, 1)]
    yield "02-two-children", [(2, k, q) for k in (1, 2, 3, 4) for q in (1, 2)]
    yield "03-step-one", [(n, 1, q) for n in (1, 5, 9) for q in range(1, n + 1)]
    yield "04-step-two", [(n, 2, n) for n in range(1, 70)]
    yield "05-whole-order", [(13, 5, q) for q in range(1, 14)]
    yield "06-step-is-n", [(n, n, q) for n in range(2, 9) for q in range(1, n + 1)]
    yield "07-step-above-n", [(n, n * 3 + 1, q) for n in range(2, 9) for q in range(1, n + 1)]
    yield "08-huge-step", small(8, count=60, largest=40, step=10**9)
    yield "09-random", small(9, count=150, largest=30, step=12)
    yield "10-random-wide", small(10, count=60, largest=300, step=500)
    yield "11-long-survivor", [(2500, 3, 2500), (3000, 7, 2999), (1800, 2, 1800)]


def cases() -> Iterator[tuple[str, str]]:
    """All (path without suffix, input text) pairs, in a fixed order."""
    yield "sample/1", text([(7, 3, 1), (7, 3, 7), (5, 1, 4), (4, 10, 2)])
    for name, games in correctness():
        yield f"secret/correctness/{name}", text(games)
    for i in range(9):
        total = round(52000 * 9 ** (i / 8))
        largest = round(1400 * 6.4 ** (i / 8))
        yield f"secret/optimization/{i + 1:02d}-n{total}", text(heavy(100 + i, total=total, largest=largest))
