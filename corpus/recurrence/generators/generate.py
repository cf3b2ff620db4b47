"""Input files of the two-term rule.

Here live the test cases as text, made from a fixed seed. No answers, no clock,
no file access: the caller decides where the text goes.
"""

from collections.abc import Iterator
from random import Random

SEED = 20260318
Rule = tuple[int, int, int, int, int]


def text(rule: Rule, questions: list[int]) -> str:
    """One input file for the rule (a, b, m, x_0, x_1) and the asked seconds."""
    return "\n".join([" ".join(map(str, rule)), str(len(questions)), *map(str, questions)]) + "\n"


def random_rule(rng: Random, m: int) -> Rule:
    """A rule with modulus `m` and random factors."""
    a, b, first, second = (rng.randrange(m) for _ in range(4))
    return a, b, m, first, second


def asked(seed: int, *, m: int, q: int, last: int) -> str:
    """Random rule with modulus `m`, `q` random seconds up to `last`, the largest among them."""
    rng = Random(SEED + seed)
    rule = random_rule(rng, m)
    questions = [rng.randint(0, last) for _ in range(q)]
    questions[rng.randrange(q)] = last
    return text(rule, questions)


def correctness() -> Iterator[tuple[str, str]]:
    """The small tests: edges, degenerate factors, composite and prime moduli."""
    yield "01-modulus-one", text((0, 0, 1, 0, 0), [0, 1, 2, 50, 3000])
    yield "02-only-start", text((3, 5, 97, 11, 29), [0, 0])
    yield "03-second-only", text((3, 5, 97, 11, 29), [1])
    yield "04-zero-factors", text((0, 0, 50, 7, 9), [0, 1, 2, 3, 4, 999])
    yield "05-geometric", text((7, 0, 1000, 3, 5), [*range(12), 400, 2500])
    yield "06-alternating", text((0, 1, 13, 4, 6), [*range(8), 2999, 3000])
    yield "07-fibonacci", text((1, 1, 10**9, 0, 1), [*range(40, -1, -1), 44, 45, 60, 91, 3000])
    yield "08-lead-in", text((6, 4, 64, 1, 3), [*range(14), 1000, 2000])
    yield "09-composite", asked(9, m=720, q=60, last=4000)
    yield "10-prime", asked(10, m=999983, q=60, last=4000)
    yield "11-large-modulus", asked(11, m=999_999_937, q=60, last=6000)
    yield "12-repeats", text((999, 998, 1001, 1000, 1), [17, 5, 17, 17, 1200, 5, 1200, 0])
    yield "13-growing", asked(13, m=10**9, q=40, last=2500)


def cases() -> Iterator[tuple[str, str]]:
    """All (path without suffix, input text) pairs, in a fixed order."""
    yield "sample/1", text((1, 1, 10, 0, 1), [0, 1, 6, 7, 60])
    for name, body in correctness():
        yield f"secret/correctness/{name}", body
    for i in range(9):
        q = round(1550 * 12 ** (i / 8))
        last = round(45000 * 12 ** (i / 8))
        m = 2 * 10**8 + 10**8 * i - (1, 3, 63)[i % 3]
        yield f"secret/optimization/{i + 1:02d}-q{q}", asked(100 + i, m=m, q=q, last=last)
