"""Inputs of Mirror Words: words with few and with many palindromes.

Yields inputs only. Answers, clocks and the environment have no place here.
"""

import random
from collections.abc import Iterator

SEED = 73561


def text(words: list[str]) -> str:
    """The input file for these words."""
    return "\n".join([str(len(words)), *words]) + "\n"


def letters(rng: random.Random, n: int, alphabet: str) -> str:
    """A random word of n letters."""
    return "".join(rng.choice(alphabet) for _ in range(n))


def word(rng: random.Random, n: int, kind: str) -> str:
    """A word of n letters: "random", "binary", "run" (nearly one letter), "mirror" or "period"."""
    if kind == "run":
        cells = ["a"] * n
        for _ in range(n // 60):
            cells[rng.randrange(n)] = "b"
        return "".join(cells)
    if kind == "mirror":
        half = letters(rng, n // 2, "abc")
        return half + letters(rng, n % 2, "abc") + half[::-1]
    if kind == "period":
        part = letters(rng, rng.randint(2, 6), "abcd")
        return (part * n)[:n]
    return letters(rng, n, "ab" if kind == "binary" else "abcdefgh")


def mix(seed: int, t: int, n: int) -> str:
    """A file of t words of about n letters of all kinds."""
    rng = random.Random(seed)
    kinds = ("random", "binary", "run", "period", "mirror", "binary", "run", "random", "period", "run")
    return text([word(rng, rng.randint(n - n // 10, n), kinds[i % len(kinds)]) for i in range(t)])


def cases() -> Iterator[tuple[str, str]]:
    """Pairs (path without suffix, input text), always the same ones in the same order."""
    yield "sample/1", text(["aaa", "abacab", "xyz"])
    small = "secret/correctness/"
    yield small + "01-one-letter", text(["a", "z"])
    yield small + "02-two-letters", text(["aa", "ab", "ba"])
    yield small + "03-no-palindromes", text(["abcdefghijklmnopqrstuvwxyz", "abcabcabc"])
    yield small + "04-one-run", text(["a" * 400, "b" * 399])
    yield small + "05-even-only", text(["abba", "xaabbaay", "cc", "deed"])
    yield small + "06-odd-only", text(["level", "abcba", "abab", "rotor"])
    yield small + "07-at-the-ends", text(["aabcd", "abcdd", "abaxyz", "xyzaba"])
    yield small + "08-broken-mirror", text(["abcdxcba", "aaabaaac", "abcddcbx"])
    rng = random.Random(SEED)
    yield small + "09-tiny", text([letters(rng, rng.randint(1, 8), "ab") for _ in range(80)])
    yield small + "10-periods", text([word(rng, rng.randint(10, 60), "period") for _ in range(12)])
    yield small + "11-mirrors", text([word(rng, rng.randint(10, 61), "mirror") for _ in range(12)])
    yield small + "12-mixed", mix(SEED + 1, 12, 60)
    sizes = ((16, 120), (21, 150), (28, 180), (36, 215), (48, 255), (62, 300), (80, 345), (104, 400))
    for i, (t, n) in enumerate(sizes, 1):
        yield f"secret/optimization/{i:02}-t{t}-n{n}", mix(SEED + 100 + i, t, n)
