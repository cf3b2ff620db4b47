"""Retries what was quarantined, after a fix: a record that can be admitted now gets a new admission number.

An old cut never changes: it counts admissions, and a retried frame comes after all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from lapledger.consumers.ingest.admission import LostRaceError, Position, admit_again, decoded, positions
from lapledger.ledger.frames.frame import Frame, FrameError
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.quarantine import PAGE, Quarantined, quarantined, quarantined_record
from lapledger.ledger.store.sql.engine import alone, reading, writing
from lapledger.ledger.streams.base import Stored


@dataclass(frozen=True, slots=True)
class Retried:
    """What came of one retry: the number under which the ledger holds it now, or None; and why, unless it is new."""

    id: int
    admission: int | None
    reason: str


_SETTLED = text("INSERT INTO quarantine_retry (id, admission, seen) VALUES (:id, :admission, :seen)")
_HELD = text(
    "SELECT admission FROM frame WHERE stream = :stream AND partition = :partition AND epoch = :epoch"
    " AND sequence = :sequence"
)


def retry(ledger: Ledger, *, seen: str, id: int | None = None, reason: str | None = None) -> list[Retried]:  # noqa: A002
    """Tries quarantined records again, in the order in which they came: one, all of a reason, or all.

    Records that were admitted before are passed over. `seen` labels the retry with a time. UserError when there is no
    record with that id.
    """
    if id is not None:
        with reading(ledger.engine) as connection:
            return _retry_all(ledger, [quarantined_record(connection, id)], seen)
    done: list[Retried] = []
    after = 0
    while True:
        with reading(ledger.engine) as connection:
            some = quarantined(connection, reason=reason, after=after, limit=PAGE)
        if not some:
            return done
        done += _retry_all(ledger, some, seen)
        after = some[-1].id


def _retry_all(ledger: Ledger, records: Sequence[Quarantined], seen: str) -> list[Retried]:
    return [_retry(ledger, record, seen) for record in records if record.admission is None]


def _retry(ledger: Ledger, record: Quarantined, seen: str) -> Retried:
    stored = Stored(record.source_offset, record.record)
    frame = decoded(stored, record.stream, record.partition)
    if isinstance(frame, FrameError):
        return Retried(record.id, None, f"{frame.reason}: {frame}")
    while True:
        position = positions(ledger)[record.stream, record.partition]
        try:
            with writing(ledger.engine) as connection:
                alone(connection, "retry")
                return _settle(connection, position, record, (stored, frame), seen)
        except LostRaceError:
            continue
        except FrameError as error:
            return Retried(record.id, None, f"{error.reason}: {error}")


def _settle(
    connection: Connection, position: Position, record: Quarantined, again: tuple[Stored, Frame], seen: str
) -> Retried:
    """Admits the frame, or finds it admitted: by another retry of this record, or from another record like it."""
    before = quarantined_record(connection, record.id).admission
    if before is not None:
        return Retried(record.id, before, "it was retried meanwhile")
    admission = admit_again(connection, position, *again)
    reason = "" if admission else "the ledger holds this frame already"
    if admission is None:
        link = again[1].link
        key = {"stream": link.stream, "partition": link.partition}
        stored_admission = connection.execute(_HELD, key | {"epoch": link.epoch, "sequence": link.sequence})
        admission = int(stored_admission.scalar_one())
    connection.execute(_SETTLED, {"id": record.id, "admission": admission, "seen": seen})
    return Retried(record.id, admission, reason)
