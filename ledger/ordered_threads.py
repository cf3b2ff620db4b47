"""Work on several threads whose results come back in order, with few of them in memory at once."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = max(1, min(8, os.cpu_count() or 1))


def in_order(work: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of the calls, in their order; as many run at once as there are cores, up to eight."""
    running: deque[Future[T]] = deque()
    with ThreadPoolExecutor(THREADS, "lap-proof") as pool:
        try:
            for call in work:
                running.append(pool.submit(call))
                if len(running) > THREADS:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for left in running:
                left.cancel()
