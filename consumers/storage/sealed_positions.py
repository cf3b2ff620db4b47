"""Where each partition stands once a prefix of its frames is sealed, as manifests tell it; a rebuild goes on there.

Exact: the position is that of the first record behind the last sealed frame, and the head is that of this frame.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from lapledger.ledger.store.heads import first_head, next_head
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.statements import DIGESTS_UP_TO
from lapledger.ledger.streams.base import Partition

_NOW = text(
    "SELECT stream, partition, identity, next_position, admissions, head, moved FROM stream_position"
    " ORDER BY stream, partition"
)


def positions_at(ledger: Ledger, connection: Connection, until: Mapping[Partition, int]) -> list[list[Any]]:
    """[stream, partition, identity, next position, admissions, head] of each, `until` being the last sealed admission.

    A partition that `until` does not name is sealed to its end.
    """
    sealed = []
    for row in connection.execute(_NOW).all():
        last = until.get((row.stream, row.partition), row.admissions)
        sealed.append(list(row[:-1]) if last >= row.admissions else _position_at(ledger, connection, row, last))
    return sealed


def _position_at(ledger: Ledger, connection: Connection, row: Any, last: int) -> list[Any]:
    """The position as it was after an earlier admission: where the first frame behind it lies on the stream."""
    parameters = {"stream": row.stream, "partition": row.partition, "last": last}
    head = first_head(ledger.identity, row.stream, row.partition)
    for digest in connection.execute(DIGESTS_UP_TO, parameters).scalars():
        head = next_head(head, digest)
    return [row.stream, row.partition, row.identity, _offset_behind(connection, row, last), last, head]


_BEHIND = text(
    "SELECT min(f.source_offset) FROM frame f WHERE f.stream = :stream AND f.partition = :partition"
    " AND f.admission > :last AND NOT EXISTS (SELECT 1 FROM quarantine_retry r JOIN quarantine q ON q.id = r.id"
    " WHERE q.stream = f.stream AND q.partition = f.partition AND q.source_offset = f.source_offset"
    " AND r.admission = f.admission)"
)


def _offset_behind(connection: Connection, row: Any, last: int) -> int:
    """Where on the stream the first frame behind an admission lies; retried frames came from the quarantine."""
    if last < row.moved:
        return 0
    behind = connection.execute(_BEHIND, {"stream": row.stream, "partition": row.partition, "last": last})
    offset = behind.scalar_one()
    return int(row.next_position if offset is None else offset)
