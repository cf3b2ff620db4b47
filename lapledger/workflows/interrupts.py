"""Ctrl-C, however often it is pressed: a burst is one interrupt, so that what cleans up after it is not cut short."""

import signal
import time
from collections.abc import Callable
from types import FrameType

BURST_S = 1.0


class Interrupts:
    """A handler of SIGINT that raises KeyboardInterrupt for the first signal of a burst and drops the others.

    A burst ends when no signal came for BURST_S seconds: whoever waits that long and presses again means it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")

    def is_new(self) -> bool:
        """Whether a signal that comes now begins a burst."""
        now, before = self._clock(), self._last
        self._last = now
        return now - before >= BURST_S

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt if the signal begins a burst."""
        if self.is_new():
            raise KeyboardInterrupt


def handle_interrupts() -> None:
    """Takes SIGINT in this process, also where a shell without job control started it as a deaf background job."""
    signal.signal(signal.SIGINT, Interrupts())
