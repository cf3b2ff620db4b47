"""Makes the next item of an iterator on another thread while the caller works on this one."""

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_END = object()


def ahead(items: Iterable[T]) -> Generator[T]:
    """The items in their order, each begun when the one before it is handed over; errors of making one are raised here.

    Holds one item more than a plain loop would, and its thread ends with the iteration, also one that is left early.
    """
    rest = iter(items)
    with ThreadPoolExecutor(1, "lap-ahead") as pool:
        coming = pool.submit(next, rest, _END)
        while (item := coming.result()) is not _END:
            coming = pool.submit(next, rest, _END)
            yield item  # type: ignore[misc]  # it is no _END
