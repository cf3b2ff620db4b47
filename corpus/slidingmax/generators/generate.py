"""Inputs of slidingmax: heights of several shapes and window lengths. Inputs only, never answers."""

import random
from collections.abc import Iterator

SEED = 41001
TOP = 99_999


def render(heights: list[int], windows: list[int]) -> str:
    """Returns the input text of one test."""
    lines = [f"{len(heights)} {len(windows)}", " ".join(map(str, heights)), " ".join(map(str, windows))]
    return "\n".join(lines) + "\n"


def uniform(rng: random.Random, n: int) -> list[int]:
    """Returns independent heights [n]."""
    return [rng.randint(0, TOP) for _ in range(n)]


def waves(rng: random.Random, n: int) -> list[int]:
    """Returns a slow saw with noise [n]."""
    return [(i * 37) % 40_000 + rng.randint(0, 50_000) for i in range(n)]


def walk(rng: random.Random, n: int) -> list[int]:
    """Returns a random walk [n], held between 0 and TOP."""
    height, out = TOP // 2, []
    for _ in range(n):
        height = min(TOP, max(0, height + rng.randint(-900, 900)))
        out.append(height)
    return out


def correctness() -> Iterator[tuple[str, list[int], list[int]]]:
    """Yields (name, heights, windows) of the small tests."""
    rng = random.Random(SEED)
    yield "01-single", [7], [1]
    yield "02-zeros", [0] * 9, [1, 4, 9]
    yield "03-all-equal", [5] * 40, [1, 2, 3, 39, 40]
    yield "04-falling", list(range(120, 0, -1)), [1, 2, 7, 60, 120]
    yield "05-rising", list(range(1, 121)), [1, 2, 7, 60, 120]
    yield "06-peak-leaves", [TOP, 1, 2, 1, 3, 1, 2, 0, 0, 1], [2, 3, 4, 10]
    yield "07-ties", [rng.randint(0, 2) for _ in range(150)], [1, 2, 3, 5, 8, 150]
    yield "08-two-values", [9, 10] * 30, [1, 2, 3, 59, 60]
    yield "09-random", uniform(rng, 200), [1, 3, 10, 33, 100, 199, 200]
    yield "10-walk", walk(rng, 300), [2, 16, 17, 31, 32, 64, 300]
    yield "11-long-fall", list(range(3000, 0, -1)), [1, 40, 1200]
    yield "12-repeat-window", uniform(rng, 80), [5, 5, 5, 80]


def optimization() -> Iterator[tuple[str, list[int], list[int]]]:
    """Yields (name, heights, windows) of the large tests; n grows by about 1.5 a test."""
    shapes = (uniform, walk, waves)
    for i in range(9):
        rng = random.Random(SEED + 100 + i)
        n = round(1600 * 1.535**i)
        low = [rng.randint(10, 50) for _ in range(5)]
        high = [rng.randint(60, 130) for _ in range(6)]
        yield f"{i + 1:02d}-n{n}", shapes[i % 3](rng, n), [*low, *high, 150]


def cases() -> Iterator[tuple[str, str]]:
    """Yields (path below data/ without suffix, input text) of every test."""
    yield "sample/1", render([2, 9, 4, 4, 7], [1, 2, 5])
    for name, heights, windows in correctness():
        yield f"secret/correctness/{name}", render(heights, windows)
    for name, heights, windows in optimization():
        yield f"secret/optimization/{name}", render(heights, [min(len(heights), max(1, k)) for k in windows])
