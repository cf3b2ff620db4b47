"""Inputs of Grid Fire: fields of stone, grass and fire.

Yields inputs only. Answers, clocks and the environment have no place here.
"""

import random
from collections.abc import Iterator

SEED = 52901


def text(rows: list[str]) -> str:
    """The input file for a field."""
    return "\n".join([f"{len(rows)} {len(rows[0])}", *rows]) + "\n"


def field(seed: int, r: int, c: int, *, stone: float, fires: int) -> str:
    """A field with randomly strewn stone and burning cells near its upper left corner."""
    rng = random.Random(seed)
    cells = [["#" if rng.random() < stone else "." for _ in range(c)] for _ in range(r)]
    for _ in range(fires):
        cells[rng.randrange(1 + r // 10)][rng.randrange(1 + c // 10)] = "F"
    return text(["".join(row) for row in cells])


def serpentine(r: int, c: int) -> str:
    """A field whose stone walls leave one long winding path."""
    rows = []
    for i in range(r):
        if i % 2 == 0:
            rows.append("." * c)
        else:
            rows.append("#" * (c - 1) + "." if i % 4 == 1 else "." + "#" * (c - 1))
    return text(["F" + rows[0][1:], *rows[1:]])


def cases() -> Iterator[tuple[str, str]]:
    """Pairs (path without suffix, input text), always the same ones in the same order."""
    yield "sample/1", text(["F..#..", "##.#..", "...###", ".#...#"])
    small = "secret/correctness/"
    yield small + "01-one-grass", text(["."])
    yield small + "02-one-fire", text(["F"])
    yield small + "03-no-fire", text(["..#", "#..", "..."])
    yield small + "04-only-stone", text(["###", "###"])
    yield small + "05-one-row", text([".....F...#..F#.."])
    yield small + "06-one-column", text(list("..#...F.....#."))
    yield small + "07-two-fires", text(["F.......", "........", "...##...", ".......F"])
    yield small + "08-no-wrap", text(["F.#..", "..#..", "..#..", "###.."])
    yield small + "09-all-fire", text(["FF", "FF", "FF"])
    yield small + "10-serpentine", serpentine(61, 50)
    yield small + "11-diagonals", text(["F#.#.", "#.#.#", ".#.#.", "#.#.#"])
    yield small + "12-random", field(SEED, 17, 23, stone=0.35, fires=2)
    yield small + "13-wide", field(SEED + 1, 6, 70, stone=0.2, fires=3)
    yield small + "14-tall", field(SEED + 2, 70, 6, stone=0.2, fires=3)
    sides = ((90, 90), (108, 112), (140, 136), (170, 165), (204, 210), (260, 250), (310, 320), (420, 430))
    for i, (r, c) in enumerate(sides, 1):
        yield (
            f"secret/optimization/{i:02}-r{r}-c{c}",
            field(SEED + 10 + i, r, c, stone=0.14 + 0.01 * i, fires=1 + i % 3),
        )
