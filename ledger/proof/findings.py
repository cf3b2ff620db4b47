"""What a verification has seen so far: counts, problems, notes, and which frames were recomputed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import Connection

from ledger.store.opened import Ledger

Progress = Callable[[str, int, int], None]
"""Told the part at work, how much of it is done, and how much there is."""


@dataclass(slots=True)
class Findings:
    """One verification under way, in one reading transaction. `seen` counts how often each frame was recomputed."""

    ledger: Ledger
    connection: Connection
    progress: Progress
    seen: dict[tuple[str, int], bytearray]
    problems: list[str]
    notes: list[str] = field(default_factory=list)
    frames: int = 0
    events: int = 0

    def problem(self, words: str) -> None:
        """Notes something that proves damage, as one line."""
        self.problems.append(" ".join(words.split()))

    def mark(self, stream: str, partition: int, admission: int, rows: int) -> None:
        """Counts a frame whose rows were recomputed, in a segment or in the tail."""
        self.frames += 1
        self.events += rows
        marks = self.seen.get((stream, partition), bytearray())
        if 0 < admission < len(marks):
            marks[admission] = min(marks[admission] + 1, 2)
        else:
            self.problem(f"{place(stream, partition, admission)} lies beyond the admissions of its partition")


def place(stream: str, partition: int, admission: int) -> str:
    """How a problem names a frame."""
    return f"frame {stream}/{partition} admission {admission}"
