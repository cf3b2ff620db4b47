"""Inputs of Divisor Sums: questions about ranges of numbers.

Yields inputs only. Answers, clocks and the environment have no place here.
"""

import random
from collections.abc import Iterator

SEED = 60169


def text(ranges: list[tuple[int, int]]) -> str:
    """The input file for these questions."""
    return "\n".join([str(len(ranges)), *(f"{left} {right}" for left, right in ranges)]) + "\n"


def questions(seed: int, q: int, top: int) -> str:
    """A file of q random ranges, the first one reaching up to top."""
    rng = random.Random(seed)
    ranges = [(rng.randint(1, top // 2), top)]
    for _ in range(q - 1):
        left, right = sorted((rng.randint(1, top), rng.randint(1, top)))
        ranges.append((left, right))
    rng.shuffle(ranges)
    return text(ranges)


def cases() -> Iterator[tuple[str, str]]:
    """Pairs (path without suffix, input text), always the same ones in the same order."""
    yield "sample/1", text([(1, 6), (6, 6), (7, 10), (1, 1)])
    small = "secret/correctness/"
    yield small + "01-first-tile", text([(1, 1)])
    yield small + "02-single-tiles", text([(k, k) for k in range(1, 41)])
    yield small + "03-prefixes", text([(1, k) for k in range(1, 61)])
    yield small + "04-squares", text([(k * k, k * k) for k in range(2, 40)] + [(4, 9), (3, 16), (10, 24)])
    yield small + "05-primes", text([(2, 3), (97, 97), (101, 103), (997, 997), (1009, 1009)])
    yield small + "06-powers", text([(2**i, 2**i) for i in range(12)] + [(3**i, 3**i + 1) for i in range(7)])
    yield small + "07-last-tiles", text([(199_990, 200_000), (200_000, 200_000), (1, 200_000)])
    yield small + "08-same-twice", text([(5, 17), (5, 17), (17, 17), (5, 5), (5, 17)])
    yield small + "09-unsorted", text([(900, 1000), (1, 20), (500, 500), (30, 29 + 300)])
    yield small + "10-random", questions(SEED, 25, 700)
    yield small + "11-random", questions(SEED + 1, 40, 3000)
    sizes = (
        (30, 7_000),
        (44, 11_500),
        (64, 19_000),
        (92, 31_000),
        (134, 51_000),
        (194, 84_000),
        (280, 126_000),
        (400, 200_000),
    )
    for i, (q, top) in enumerate(sizes, 1):
        yield f"secret/optimization/{i:02}-q{q}-n{top}", questions(SEED + 10 + i, q, top)
