"""Input files of the weights problem.

Here live the test cases as text, made from a fixed seed. No answers, no clock,
no file access: the caller decides where the text goes.
"""

from collections.abc import Iterator
from random import Random

SEED = 20260211
Question = tuple[str, int]


def text(values: list[int], questions: list[Question]) -> str:
    """One input file for the given numbers and questions."""
    lines = [f"{len(values)} {len(questions)}", *map(str, values), *(f"{kind} {x}" for kind, x in questions)]
    return "\n".join(lines) + "\n"


def small(seed: int, *, n: int, low: int, high: int) -> str:
    """Random numbers in [low, high] with questions that mostly hit."""
    rng = Random(SEED + seed)
    values = [rng.randint(low, high) for _ in range(n)]
    questions = [("s", rng.choice(values) + rng.choice(values)) for _ in range(8)]
    questions += [("d", abs(rng.choice(values) - rng.choice(values))) for _ in range(7)]
    return text(values, [*questions, ("d", 0), ("s", 2 * values[0]), ("s", 2 * high + 1)])


def heavy(seed: int, *, n: int) -> str:
    """About n/8 different numbers, each several times, and 20 questions."""
    rng = Random(SEED + seed)
    pool = rng.sample(range(-40000, 99999), n // 8 + 1)
    values = [rng.choice(pool) for _ in range(n)]
    questions = [("s", rng.choice(pool) + rng.choice(pool)) for _ in range(11)]
    questions += [("d", abs(rng.choice(pool) - rng.choice(pool))) for _ in range(8)]
    questions.append(("d", 0))
    rng.shuffle(questions)
    return text(values, questions)


def correctness() -> Iterator[tuple[str, str]]:
    """The small tests: edges, equal numbers, signs, ties."""
    yield "01-one-weight", text([7], [("s", 14), ("s", 7), ("d", 0), ("d", 7)])
    yield "02-two-equal", text([4, 4], [("s", 8), ("d", 0), ("s", 4), ("d", 4)])
    yield "03-all-equal", text([5] * 40, [("s", 10), ("d", 0), ("d", 5), ("s", 5)])
    yield "04-all-zero", text([0] * 25, [("s", 0), ("d", 0), ("d", 1)])
    yield "05-negative", text([-3, -1, -3, 2, 5, -8, 3], [("s", -6), ("s", 0), ("s", -4), ("d", 5), ("d", 0), ("d", 8)])
    extremes = [10**6, -(10**6), 10**6, -(10**6), 0]
    yield "06-extremes", text(extremes, [("s", 2 * 10**6), ("s", -2 * 10**6), ("d", 2 * 10**6), ("s", 0), ("d", 10**6)])
    yield "07-few-values", small(7, n=120, low=1, high=6)
    yield "08-signed", small(8, n=200, low=-15, high=15)
    yield "09-wide", small(9, n=150, low=-(10**6), high=10**6)
    yield "10-descending", text(list(range(300, 0, -1)), [("s", 300), ("s", 301), ("d", 1), ("d", 299), ("d", 300)])
    yield "11-long-run", text([9] * 1500 + [1, 2, 3], [("s", 18), ("s", 10), ("d", 8), ("d", 0)])
    yield "12-alternating", text([1, 2] * 60, [("s", 3), ("s", 2), ("s", 4), ("d", 1), ("d", 0)])


def cases() -> Iterator[tuple[str, str]]:
    """All (path without suffix, input text) pairs, in a fixed order."""
    yield "sample/1", text([1, 3, 1, 3, 5], [("s", 4), ("s", 6), ("d", 0), ("d", 2)])
    for name, body in correctness():
        yield f"secret/correctness/{name}", body
    for i in range(9):
        n = round(3300 * 14 ** (i / 8))
        yield f"secret/optimization/{i + 1:02d}-n{n}", heavy(100 + i, n=n)
