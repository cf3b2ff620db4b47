"""Inputs of multiples: teams of divisors and street lengths. Inputs only, never answers."""

import random
from collections.abc import Iterator

SEED = 41002
TOP_N = 20_000
Team = tuple[list[int], list[int]]


def render(teams: list[Team]) -> str:
    """Returns the input text of one test."""
    lines = [str(len(teams))]
    for divisors, lengths in teams:
        lines.append(" ".join(map(str, [len(divisors), *divisors])))
        lines.append(" ".join(map(str, [len(lengths), *lengths])))
    return "\n".join(lines) + "\n"


def random_team(rng: random.Random, *, m: int, top: int, q: int, n: int) -> Team:
    """Returns a team of m divisors from 2..top and q lengths between n/2 and n."""
    return [rng.randint(2, top) for _ in range(m)], [rng.randint((n + 1) // 2, n) for _ in range(q)]


def correctness() -> Iterator[tuple[str, list[Team]]]:
    """Yields (name, teams) of the small tests."""
    rng = random.Random(SEED)
    yield "01-one-house", [([1], [1]), ([2], [1]), ([1000000], [1])]
    yield "02-one-divisor", [([7], [6, 7, 8, 13, 14, 700]), ([1], [1, 2, 1000])]
    yield "03-coprime", [([2, 3], [30, 31, 36]), ([3, 5, 7], [104, 105, 106])]
    yield "04-shared-factors", [([4, 6], [11, 12, 24, 25]), ([6, 10, 15], [29, 30, 31, 60]), ([8, 12, 18], [72, 144])]
    yield "05-nested", [([2, 4, 8, 16], [15, 16, 64]), ([3, 9, 27], [81, 82]), ([5, 10, 20, 40, 80], [400])]
    yield "06-repeated", [([5, 5], [25]), ([4, 4, 6, 6, 4], [48, 50]), ([9] * 7, [9, 90, 900])]
    yield "07-with-one", [([1, 2, 3], [10, 99]), ([6, 1], [100])]
    yield "08-too-big", [([1000000, 999999], [20000, 1]), ([20000, 19999], [19998, 19999, 20000])]
    yield "09-lengths-unsorted", [([4, 10], [100, 3, 57, 57, 20, 1, 99]), ([3], [9, 8, 7, 6])]
    yield "10-primes", [([2, 3, 5, 7, 11, 13, 17], [1, 2, 17, 510, 2310, 20000])]
    yield "11-random-small", [random_team(rng, m=rng.randint(1, 5), top=12, q=5, n=60) for _ in range(12)]
    yield "12-random-mixed", [random_team(rng, m=rng.randint(1, 7), top=90, q=4, n=900) for _ in range(10)]


def optimization() -> Iterator[tuple[str, list[Team]]]:
    """Yields (name, teams) of the large tests; the sum of all lengths grows by about 1.5 a test."""
    for i in range(9):
        rng = random.Random(SEED + 100 + i)
        groups, queries = round(3 * 1.52**i), round(60 * 1.03**i)
        teams = [random_team(rng, m=rng.randint(6, 7), top=40, q=queries, n=9_000) for _ in range(groups)]
        yield f"{i + 1:02d}-g{groups}-q{queries}", teams


def cases() -> Iterator[tuple[str, str]]:
    """Yields (path below data/ without suffix, input text) of every test."""
    yield "sample/1", render([([3, 5], [9, 10, 1]), ([4, 6, 4], [12])])
    for name, teams in correctness():
        yield f"secret/correctness/{name}", render(teams)
    for name, teams in optimization():
        yield f"secret/optimization/{name}", render(teams)
