"""Input files of the word board.

Here live the test cases as text, made from a fixed seed. No answers, no clock,
no file access: the caller decides where the text goes.
"""

from collections.abc import Iterator
from itertools import accumulate
from random import Random

SEED = 20260422
HEADS = ["b", "br", "d", "f", "g", "k", "kl", "l", "m", "n", "p", "r", "s", "st", "t", "v", "w"]
TAILS = ["a", "al", "e", "en", "i", "ir", "o", "on", "u", "ut"]
SEPARATORS = [" ", " ", " ", " ", " ", ", ", ". ", " - ", " 7 "]


def text(lines: list[str], k: int) -> str:
    """One input file for the given lines and board size."""
    return "\n".join([f"{len(lines)} {k}", *lines]) + "\n"


def vocabulary(rng: Random, size: int) -> list[str]:
    """`size` different words of two or three syllables."""
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = rng.randint(2, 3)
        words["".join(rng.choice(HEADS) + rng.choice(TAILS) for _ in range(syllables))] = None
    return list(words)


def dressed(rng: Random, word: str) -> str:
    """The word as it may stand in a text: mostly lower case, a separator behind it."""
    spelling = rng.choice([word, word, word, word, word.capitalize(), word.upper()])
    return spelling + rng.choice(SEPARATORS)


def sent(seed: int, *, words: int, different: int, boards: int) -> list[str]:
    """Lines of about ten words with falling frequencies, the board renewed `boards` times."""
    rng = Random(SEED + seed)
    pool = vocabulary(rng, different)
    weights = list(accumulate(1 / (rank + 12) ** 0.8 for rank in range(different)))
    drawn = rng.choices(pool, cum_weights=weights, k=words)
    lines = ["".join(dressed(rng, word) for word in drawn[i : i + 10]).rstrip() for i in range(0, words, 10)]
    for board in range(boards, 0, -1):
        lines.insert(len(lines) * board // boards, "#")
    return lines


def correctness() -> Iterator[tuple[str, str]]:
    """The small tests: nothing sent, ties, case, separators, short boards."""
    yield "01-nothing", text(["#"], 3)
    yield "02-no-letters", text(["12 34, 5!", "", "#", "...", "#"], 2)
    yield "03-one-word", text(["word", "#"], 1)
    yield "04-fewer-than-k", text(["one two", "#", "two three", "#"], 10)
    yield "05-ties", text(["pear fig apple", "#", "kiwi date apple fig", "#", "fig zinc kiwi apple date", "#"], 4)
    yield "06-case", text(["Storm STORM storm sTorm", "Calm calm", "#"], 2)
    yield "07-separators", text(["it's o'clock a_b x-y", "c3po r2d2", "   lead  and   trail   ", "#"], 12)
    yield "08-board-twice", text(["b a b", "#", "#", "a a", "#"], 1)
    yield "09-prefixes", text(["a ab abc abcd ab abc a abcd", "#", "abcd abc", "#", "a", "#"], 3)
    yield "10-empty-lines", text(["", "", "x", "", "#", "", "y y", "", "#", "tail is not shown"], 2)
    yield "11-random", text(sent(11, words=600, different=60, boards=9), 5)
    yield "12-flat", text(sent(12, words=400, different=300, boards=6), 30)
    yield "13-empty-board-first", text(["#", "then some words, some", "#"], 2)


def cases() -> Iterator[tuple[str, str]]:
    """All (path without suffix, input text) pairs, in a fixed order."""
    lines = ["Rain, rain and wind.", "#", "The wind and the sun;", "and it's 12 o'clock", "#", "The end."]
    yield "sample/1", text(lines, 2)
    for name, body in correctness():
        yield f"secret/correctness/{name}", body
    for i in range(9):
        words = round(2850 * 13 ** (i / 8))
        lines = sent(100 + i, words=words, different=words // 8, boards=40)
        yield f"secret/optimization/{i + 1:02d}-w{words}", text(lines, 10)
