"""Problems side by side, for machine code, which leaves the interpreter free. Judging in numpy gains nothing here."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREADS = 2
"""Problems that are worked on at a time. The results do not depend on it."""


def side_by_side(call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of a pure function, in the order of the items."""
    with ThreadPoolExecutor(THREADS, "lap-weigh") as pool:
        yield from pool.map(call, items)
