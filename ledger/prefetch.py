"""Computes the next item of an iterator on another thread while the caller uses the current one."""

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_END = object()


def prefetch(items: Iterable[T]) -> Generator[T]:
    """The items in their order, each started when the previous one is yielded; errors are raised here.

    Holds one item more than a plain loop; the thread ends with the iteration, also when it is abandoned early.
    """
    rest = iter(items)
    with ThreadPoolExecutor(1, "lap-ahead") as pool:
        coming = pool.submit(next, rest, _END)
        while (item := coming.result()) is not _END:
            coming = pool.submit(next, rest, _END)
            yield item  # type: ignore[misc]  # not _END
