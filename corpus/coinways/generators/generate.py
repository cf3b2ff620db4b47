"""Inputs of Coin Ways: coin values and prices.

Yields inputs only. Answers, clocks and the environment have no place here.
"""

import random
from collections.abc import Iterator

SEED = 88811


def text(coins: list[int], prices: list[int]) -> str:
    """The input file for these coins and prices."""
    rows = [[len(coins), len(prices)], coins, prices]
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def kiosk(seed: int, k: int, *, top: int, q: int, low: int) -> str:
    """A file of k coins (the others than 1 from low to 12 * low) and q prices, one of them top."""
    rng = random.Random(seed)
    coins = sorted([1, *rng.sample(range(low, 12 * low), k - 1)])
    prices = [rng.randint(top // 3, top) for _ in range(q - 1)] + [top]
    rng.shuffle(prices)
    return text(coins, prices)


def cases() -> Iterator[tuple[str, str]]:
    """Pairs (path without suffix, input text), always the same ones in the same order."""
    yield "sample/1", text([1, 2, 5], [0, 4, 6, 10])
    small = "secret/correctness/"
    yield small + "01-one-coin", text([1], [0, 1, 2, 1000])
    yield small + "02-price-zero", text([1, 7], [0])
    yield small + "03-two-coins", text([1, 2], list(range(30)))
    yield small + "04-coin-too-big", text([1, 50, 2000], [3, 49, 50, 51, 100])
    yield small + "05-purse", text([1, 2, 5, 10, 20, 50, 100, 200], [200, 500, 999, 1000])
    yield small + "06-order-matters-not", text([1, 3, 4], [5, 6, 7, 8, 12])
    yield small + "07-multiples", text([1, 2, 4, 8, 16, 32], [31, 32, 33, 64, 200])
    yield small + "08-same-price", text([1, 5, 6], [11, 11, 11, 30, 30])
    yield small + "09-large-answers", text([1, 2, 3, 4, 5, 6, 7, 8], [1500, 2500])
    yield small + "10-long-way", text([1, 2, 1999], [5000, 4001, 1999])
    yield small + "11-random", kiosk(SEED, 5, top=600, q=20, low=4)
    yield small + "12-random", kiosk(SEED + 1, 8, top=1500, q=30, low=9)
    sizes = ((6, 4_000, 70), (7, 6_000, 84), (7, 9_000, 100), (8, 13_000, 125), (8, 19_000, 150), (9, 27_000, 185))
    sizes += ((10, 40_000, 230), (11, 56_000, 300))
    for i, (k, top, q) in enumerate(sizes, 1):
        yield f"secret/optimization/{i:02}-k{k}-p{top}", kiosk(SEED + 10 + i, k, top=top, q=q, low=60 + 5 * i)
