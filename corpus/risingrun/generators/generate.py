"""Inputs of Rising Run: winters given by linear congruences.

Yields inputs only. Answers, clocks and the environment have no place here.
"""

import random
from collections.abc import Iterator

SEED = 41017
PRIMES = (1_000_000_007, 998_244_353, 1_000_003, 65_537, 10_007)


def winter(rng: random.Random, n: int, kind: str) -> tuple[int, int, int, int, int]:
    """One winter of n days: "random", "ties" (few heights), "rise" or "fall" (saw teeth)."""
    m = rng.choice(PRIMES)
    if kind == "ties":
        m = rng.choice((2, 3, 7, 31, 61, 97))
    s = rng.randrange(m)
    if kind == "rise":
        return n, s, 1, max(1, m // rng.randint(2 * n // 5 + 1, n + 3)), m
    if kind == "fall":
        return n, s, 1, m - max(1, m // rng.randint(n // 2 + 1, n + 3)), m
    return n, s, rng.randrange(1, m), rng.randrange(m), m


def text(winters: list[tuple[int, int, int, int, int]]) -> str:
    """The input file for these winters."""
    return "\n".join([str(len(winters)), *(" ".join(map(str, w)) for w in winters)]) + "\n"


def mix(seed: int, t: int, n: int) -> str:
    """A file of t winters of about n days: mostly random ones, some of each other kind."""
    rng = random.Random(seed)
    kinds = ("random", "random", "random", "rise", "random", "random", "ties", "random", "fall", "random")
    return text([winter(rng, rng.randint(max(1, n - n // 10), n), kinds[i % len(kinds)]) for i in range(t)])


def cases() -> Iterator[tuple[str, str]]:
    """Pairs (path without suffix, input text), always the same ones in the same order."""
    yield "sample/1", text([(6, 3, 5, 2, 11), (4, 9, 1, 8, 10), (5, 0, 0, 0, 1)])
    small = "secret/correctness/"
    yield small + "01-single-day", text([(1, 0, 0, 0, 1), (1, 5, 1, 1, 9)])
    yield small + "02-all-equal", text([(400, 7, 1, 0, 8), (12, 0, 0, 0, 5)])
    yield small + "03-rising", text([(400, 0, 1, 1, 1000), (399, 0, 1, 2_000_000, 1_000_000_007)])
    yield small + "04-falling", text([(400, 999, 1, 999, 1000)])
    yield small + "05-two-heights", text([(30, 0, 1, 1, 2), (31, 1, 1, 1, 2), (2, 1, 0, 0, 2)])
    yield small + "06-late-record", text([(9, 2, 1, 7, 10), (8, 2, 3, 5, 31)])
    rng = random.Random(SEED)
    yield small + "07-tiny", text([winter(rng, rng.randint(1, 9), "ties") for _ in range(60)])
    yield small + "08-ties", text([winter(rng, rng.randint(20, 60), "ties") for _ in range(12)])
    yield small + "09-saw-up", text([winter(rng, rng.randint(20, 90), "rise") for _ in range(8)])
    yield small + "10-saw-down", text([winter(rng, rng.randint(20, 90), "fall") for _ in range(8)])
    yield small + "11-big-heights", text([(50, 1, 48_271, 11, 1_000_000_007), (60, 3, 69_621, 5, 998_244_353)])
    yield small + "12-mixed", mix(SEED + 1, 12, 60)
    sizes = ((32, 110), (44, 140), (58, 170), (80, 205), (105, 250), (135, 300), (165, 350), (200, 400))
    for i, (t, n) in enumerate(sizes, 1):
        yield f"secret/optimization/{i:02}-t{t}-n{n}", mix(SEED + 100 + i, t, n)
