"""What a verification has seen so far: counts, problems, notes, and which frames were recomputed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from sqlalchemy import Connection, text

from lapledger.ledger.errors import LapError
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.base import Partition

Progress = Callable[[str, int, int], None]
"""Called with the current part, how much of it is done, and the total."""

NONSENSE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, pa.ArrowException)
"""What Python and Arrow raise when a database or file holds values of a kind that nobody of us writes."""

_KNOWN = text(
    "SELECT type, key, rows FROM frame WHERE stream = :stream AND partition = :partition AND admission = :admission"
)


@dataclass(slots=True)
class Findings:
    """One verification under way, in one reading transaction. `seen` counts how often each frame was recomputed."""

    ledger: Ledger
    connection: Connection
    progress: Progress
    seen: dict[Partition, bytearray]
    problems: list[str]
    notes: list[str] = field(default_factory=list)
    frames: int = 0
    events: int = 0

    def problem(self, message: str) -> None:
        """Record something that proves damage, as one line."""
        self.problems.append(" ".join(message.split()))

    def mark(self, meta: FrameMeta) -> None:
        """Counts a frame whose rows were recomputed, in a segment or in the tail."""
        self.frames += 1
        self.events += meta.rows
        marks = self.seen.get((meta.stream, meta.partition), bytearray())
        if 0 < meta.admission < len(marks):
            marks[meta.admission] = min(marks[meta.admission] + 1, 2)
        else:
            self.problem(f"{meta.location} is past the admissions of its partition")

    def describe_frame(self, stream: str, partition: int, admission: int) -> str:
        """A frame in messages: its position, and its type, key and size according to the database."""
        bound = {"stream": stream, "partition": partition, "admission": admission}
        row = self.connection.execute(_KNOWN, bound).one_or_none()
        what = "" if row is None else f" ({row.type} of {row.key!r}, {row.rows} events)"
        return f"{frame_location(stream, partition, admission)}{what}"

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Turns nonsense in what is checked into a problem; `what` names it. The check ends there."""
        try:
            yield
        except LapError:
            raise
        except NONSENSE as error:
            self.problem(f"{what} cannot be checked, it holds what nobody wrote: {type(error).__name__}: {error}")


def frame_location(stream: str, partition: int, admission: int) -> str:
    """The position of a frame in messages."""
    return f"frame {stream}/{partition} admission {admission}"
