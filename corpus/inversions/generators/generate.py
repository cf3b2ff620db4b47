"""Inputs of inversions: queues of several shapes. Inputs only, never answers."""

import random
from collections.abc import Iterator

SEED = 41003
TOP = 99_999


def render(tickets: list[int]) -> str:
    """Returns the input text of one test."""
    return f"{len(tickets)}\n{' '.join(map(str, tickets))}\n"


def nearly_sorted(rng: random.Random, n: int, swaps: int) -> list[int]:
    """Returns rising tickets [n] with some places swapped."""
    tickets = list(range(1, n + 1))
    for _ in range(swaps):
        i, j = rng.randrange(n), rng.randrange(n)
        tickets[i], tickets[j] = tickets[j], tickets[i]
    return tickets


def correctness() -> Iterator[tuple[str, list[int]]]:
    """Yields (name, tickets) of the small tests."""
    rng = random.Random(SEED)
    yield "01-one", [5]
    yield "02-two", [2, 1]
    yield "03-all-equal", [7] * 50
    yield "04-rising", list(range(-30, 30))
    yield "05-falling", list(range(400, 0, -1))
    yield "06-negative", [rng.randint(-9, -1) for _ in range(60)]
    yield "07-ties", [rng.randint(0, 3) for _ in range(200)]
    yield "08-extremes", [TOP, -TOP, 0, TOP, -TOP, 0, -1, 1]
    yield "09-permutation", rng.sample(range(1, 301), 300)
    yield "10-random", [rng.randint(-TOP, TOP) for _ in range(500)]
    yield "11-nearly-sorted", nearly_sorted(rng, 600, 5)
    yield "12-long-fall", list(range(1500, -1500, -1))


def optimization() -> Iterator[tuple[str, list[int]]]:
    """Yields (name, tickets) of the large tests; n grows by about 1.5 a test."""
    for i in range(9):
        rng = random.Random(SEED + 100 + i)
        n = round(1500 * 1.53**i)
        tickets = rng.sample(range(1, n + 1), n) if i % 3 == 1 else [rng.randint(-9999, TOP) for _ in range(n)]
        yield f"{i + 1:02d}-n{n}", tickets


def cases() -> Iterator[tuple[str, str]]:
    """Yields (path below data/ without suffix, input text) of every test."""
    yield "sample/1", render([3, 1, 4, 1, 5, -2])
    for name, tickets in correctness():
        yield f"secret/correctness/{name}", render(tickets)
    for name, tickets in optimization():
        yield f"secret/optimization/{name}", render(tickets)
