"""What the victims of the chaos suite write: numbered facts that follow from their number alone, and their names.

An undisturbed run and a killed one can so be compared fact by fact, whoever appended what and when.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.events import AnnotationMade, Event, FilterDecided, ProgramAdded
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import events

PROBLEMS = 7
NAMES = {"filter.decided": "subject_id", "program.added": "program_id", "annotation.made": "annotation_id"}
"""The types that are written, each with the column that names its facts."""

DERIVED = {"reward.assigned": "reward_id", "criterion.declared": "criterion_hash"}
"""The types that are derived; the cut that a reward was computed at may differ."""


def source(number: int) -> bytes:
    """The source of the program of a number: a blob."""
    return f"print({number})\n".encode() * (1 + number % 50)


def facts(number: int) -> list[Event]:
    """The facts of a number: always a decision, sometimes a program and a note on another stream."""
    problem = f"p{number % PROBLEMS}"
    events_of_number: list[Event] = [
        FilterDecided(
            problem_id=problem,
            subject="test",
            subject_id=f"{problem}/{number}",
            rule="r",
            campaign_id=None,
            kept=number % 2 == 0,
            reason="é" * (number % 5),
            figure=None if number % 3 == 0 else number / 4,
        )
    ]
    if number % 5 == 0:
        events_of_number.append(
            ProgramAdded(
                problem_id=problem,
                program_id=f"{problem}/program-{number}",
                name="a.py",
                model="human",
                label="accepted",
                language="python3",
                source_blob=blob_digest(source(number)),
                source_bytes=len(source(number)),
                rollout_id=None,
            )
        )
    if number % 11 == 0:
        events_of_number.append(
            AnnotationMade(
                annotation_id=str(number), subject="worker", subject_id="w", mark="suspect", author="a", reason=""
            )
        )
    return events_of_number


def name_of(event: Event) -> str:
    """The name that tells a fact from all others."""
    if isinstance(event, FilterDecided):
        return event.subject_id
    return event.program_id if isinstance(event, ProgramAdded) else f"note {getattr(event, 'annotation_id', '')}"


def held(ledger: Ledger) -> list[str]:
    """The names of all facts in the ledger, repeats too."""
    cut = ledger.cut()
    names: list[str] = []
    for kind, column in NAMES.items():
        prefix = "note " if kind == "annotation.made" else ""
        names += [prefix + name for name in events(ledger, kind, 1, cut, columns=[column])[column].to_pylist()]
    return names


def largest(ledger: Ledger) -> int:
    """The largest number of a decision in the ledger, -1 when there is none."""
    subjects = events(ledger, "filter.decided", 1, ledger.cut(), columns=["subject_id"])["subject_id"].to_pylist()
    return max((int(name.split("/")[1]) for name in subjects), default=-1)


def wanted(numbers: Iterable[int]) -> Iterator[Event]:
    """All facts of some numbers, in their order."""
    for number in numbers:
        yield from facts(number)


def table(ledger: Ledger, kind: str, *, with_positions: bool) -> pa.Table:
    """All facts of a type: with their places in the order of admission, or their values alone, in order of name."""
    rows = events(ledger, kind, 1, ledger.cut())
    if with_positions:
        return rows
    values = rows.select([name for name in rows.column_names if not name.startswith("_") and name != "cut"])
    return values.sort_by((NAMES | DERIVED)[kind])
