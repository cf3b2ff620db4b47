"""Named points between two durable effects where a test may kill the process, to prove crash safety.

A point does nothing unless a test armed it: no environment is read here.
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
    """Make the process die by SIGKILL at the `hits`-th time that it reaches a point, or stop by SIGSTOP.

    KeyError for an unknown point.
    """
    if point not in POINTS:
        raise KeyError(point)
    _armed[point] = hits, by


def failpoint(point: str) -> None:
    """Mark that a point was reached; kills or stops the process if the point was armed for this hit."""
    if point in _armed:
        hits, by = _armed[point]
        _armed[point] = hits - 1, by
        if hits == 1:
            os.kill(os.getpid(), by)


def remaining_hits() -> dict[str, int]:
    """Hits left for each armed point before it fires."""
    return {point: hits for point, (hits, _) in _armed.items()}
