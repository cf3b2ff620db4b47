"""Inputs of paritylinks: rumours about switches, most of them true. Inputs only, never answers."""

import random
from collections.abc import Iterator

SEED = 41004
Rumour = tuple[int, int, int]


def render(n: int, rumours: list[Rumour]) -> str:
    """Returns the input text of one test."""
    return "\n".join([f"{n} {len(rumours)}", *(f"{i} {j} {b}" for i, j, b in rumours)]) + "\n"


def mixed(rng: random.Random, n: int, m: int, *, lies: float) -> list[Rumour]:
    """Returns m rumours between random switches, a share `lies` of which is turned round."""
    state = [rng.randrange(2) for _ in range(n + 1)]
    out = []
    for _ in range(m):
        i, j = rng.randint(1, n), rng.randint(1, n)
        out.append((i, j, state[i] ^ state[j] ^ (rng.random() < lies)))
    return out


def chain(rng: random.Random, n: int, m: int) -> list[Rumour]:
    """Returns a chain 1-2-3-...-n of rumours, then random true and false ones."""
    links = [(i, i + 1, rng.randrange(2)) for i in range(1, n)]
    return links + [(rng.randint(1, n), rng.randint(1, n), rng.randrange(2)) for _ in range(m - len(links))]


def star(rng: random.Random, n: int, m: int) -> list[Rumour]:
    """Returns rumours that each join a new switch to the last one, both ways round, then random ones."""
    links = [(1, i, 1) if i % 2 else (i, 1, 0) for i in range(2, n + 1)]
    return links + [(rng.randint(1, n), rng.randint(1, n), rng.randrange(2)) for _ in range(m - len(links))]


def correctness() -> Iterator[tuple[str, int, list[Rumour]]]:
    """Yields (name, n, rumours) of the small tests."""
    rng = random.Random(SEED)
    yield "01-one-switch", 1, [(1, 1, 0), (1, 1, 1), (1, 1, 1)]
    yield "02-one-rumour", 2, [(2, 1, 1)]
    yield "03-said-twice", 3, [(1, 2, 1), (2, 1, 1), (1, 2, 0), (2, 1, 0), (1, 3, 0), (3, 2, 1), (3, 2, 0)]
    yield "04-odd-cycle", 5, [(1, 2, 1), (2, 3, 1), (3, 4, 1), (4, 5, 1), (5, 1, 1), (5, 1, 0), (1, 3, 0)]
    yield "05-refused-is-forgotten", 4, [(1, 2, 0), (1, 2, 1), (3, 4, 1), (2, 3, 0), (1, 4, 0), (1, 4, 1), (2, 4, 1)]
    yield "06-all-true", 40, mixed(rng, 40, 200, lies=0.0)
    yield "07-all-random", 12, mixed(rng, 12, 150, lies=0.5)
    yield "08-few-links", 200, mixed(rng, 200, 90, lies=0.3)
    yield "09-chain", 60, chain(rng, 60, 160)
    yield "10-star", 50, star(rng, 50, 140)
    yield "11-random", 100, mixed(rng, 100, 400, lies=0.2)
    yield (
        "12-join-late",
        8,
        [(1, 2, 1), (3, 4, 1), (5, 6, 1), (7, 8, 1), (2, 3, 1), (6, 7, 0), (4, 5, 1), (1, 8, 1), (8, 1, 0)],
    )
    yield "13-long-chain", 1500, chain(rng, 1500, 1700)


def optimization() -> Iterator[tuple[str, int, list[Rumour]]]:
    """Yields (name, n, rumours) of the large tests; the number of rumours grows by about 1.5 a test."""
    for i in range(9):
        rng = random.Random(SEED + 100 + i)
        m = round(830 * 1.53**i)
        n = round(600 * 1.24**i)
        rumours = chain(rng, min(n, m // 2), m) if i % 4 == 2 else mixed(rng, n, m, lies=0.2)
        yield f"{i + 1:02d}-n{n}-m{m}", n, rumours


def cases() -> Iterator[tuple[str, str]]:
    """Yields (path below data/ without suffix, input text) of every test."""
    yield "sample/1", render(4, [(1, 2, 1), (2, 3, 1), (1, 3, 1), (3, 4, 0), (4, 1, 0), (2, 2, 1)])
    for name, n, rumours in correctness():
        yield f"secret/correctness/{name}", render(n, rumours)
    for name, n, rumours in optimization():
        yield f"secret/optimization/{name}", render(n, rumours)
