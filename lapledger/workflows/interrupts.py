"""Ctrl-C, however often it is pressed: a burst is one interrupt, so that what cleans up after it is not cut short."""

import signal
import time
from collections.abc import Callable
from types import FrameType

BURST_S = 1.0
"""How long a burst lasts, for commands that one interrupt ends."""
SHORT_BURST_S = 0.1
"""The same where a second interrupt has a meaning of its own: shorter than two presses of a finger are apart."""


class Interrupts:
    """A handler of SIGINT that raises KeyboardInterrupt for the first signal of a burst and drops the others.

    A burst lasts `burst_s` seconds from its first signal: whoever presses again later means it.
    """

    def __init__(self, burst_s: float = BURST_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst_s, self._clock = burst_s, clock
        self._began = float("-inf")

    def is_new(self) -> bool:
        """Whether a signal that comes now begins a burst."""
        now = self._clock()
        is_new = now - self._began >= self._burst_s
        self._began = now if is_new else self._began
        return is_new

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt if the signal begins a burst."""
        if self.is_new():
            raise KeyboardInterrupt


def handle_interrupts() -> None:
    """Takes SIGINT in this process, also where a shell without job control started it as a deaf background job."""
    signal.signal(signal.SIGINT, Interrupts())


def ignore_interrupts() -> None:
    """Lets nothing change the exit code of a process that is done: the interpreter takes its handlers down first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
