"""Named places between two durable effects where a test may kill the process, to prove that nothing depends on luck.

Nothing happens at a point unless the edge armed it: no environment is read here.
"""

import os
import signal

POINTS = frozenset(
    {
        "blob.put.placed",
        "compact.committed",
        "compact.manifest",
        "compact.segment",
        "copy.committed",
        "copy.files",
        "copy.rows",
        "copy.tables",
        "reward.declared",
        "seal.committed",
        "seal.deleted",
        "seal.manifest",
        "seal.segment",
        "seal.settled",
        "segment.placed",
        "segment.written",
        "sink.advanced",
        "sink.committed",
        "sink.stored",
        "spool.delivered",
        "spool.stored",
        "spool.trimmed",
        "stream.append.before",
        "stream.append.stored",
        "stream.appended",
        "stream.trimmed",
    }
)
"""Every point by name: the part, then what has just been done."""

_armed: dict[str, tuple[int, signal.Signals]] = {}


def arm(point: str, hits: int = 1, *, by: signal.Signals = signal.SIGKILL) -> None:
    """Makes the process die by SIGKILL at the `hits`-th time that it reaches a point, or stop by SIGSTOP.

    KeyError for an unknown point.
    """
    if point not in POINTS:
        raise KeyError(point)
    _armed[point] = hits, by


def reached(point: str) -> None:
    """Tells that a point was reached; returns unless it was armed for this hit."""
    if point in _armed:
        hits, by = _armed[point]
        _armed[point] = hits - 1, by
        if hits == 1:
            os.kill(os.getpid(), by)


def left() -> dict[str, int]:
    """How many hits each armed point still waits for."""
    return {point: hits for point, (hits, _) in _armed.items()}
