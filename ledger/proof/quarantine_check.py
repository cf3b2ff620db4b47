"""Checks the quarantine: every row against its sealed copy, and every retry against the frame that it led to."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Row, text

from lapledger.ledger.proof.findings import Findings, frame_location
from lapledger.ledger.proof.positions import Retried
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.store.quarantine import PAGE, Quarantined, quarantined

_RETRIED = text(
    "SELECT r.id, r.admission, q.stream, q.partition, q.source_offset, q.headers, f.digest, f.source_offset AS came"
    " FROM quarantine_retry r LEFT JOIN quarantine q ON q.id = r.id LEFT JOIN frame f ON f.stream = q.stream"
    " AND f.partition = q.partition AND f.admission = r.admission ORDER BY r.id"
)
_REASONS = text("SELECT reason, count(*) FROM quarantine GROUP BY reason ORDER BY reason")


class QuarantineCheck:
    """Learns what was sealed of the quarantine, then compares the table with it."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._sealed: dict[int, FrameMeta] = {}

    @property
    def last_sealed(self) -> int:
        """The last id that a segment holds, 0 when none does."""
        return max(self._sealed, default=0)

    def take(self, metas: Iterable[FrameMeta]) -> None:
        """Notes the records that a segment holds; a problem for one that another segment holds too."""
        for meta in metas:
            if meta.admission in self._sealed:
                self._findings.problem(f"quarantined record {meta.admission} is in two segments")
            self._sealed[meta.admission] = meta

    def finish(self) -> None:
        """Problems for rows that are not those of the segments, for lost ones, and for retries that led nowhere."""
        left = dict(self._sealed)
        for record in self._rows():
            meta = left.pop(record.id, None)
            if meta is None and record.id < self.last_sealed:
                self._findings.problem(f"quarantined record {record.id} is in no segment, although later ones are")
            if meta is not None and meta != _meta(record):
                record_text = f"{record.stream}/{record.partition} at {record.source_offset}, {record.reason}"
                self._findings.problem(f"quarantined record {record.id} ({record_text}) differs from its sealed copy")
        for number in left:
            self._findings.problem(f"quarantined record {number} is sealed, and missing from the SQL database")
        for row in self._findings.connection.execute(_RETRIED).all():
            with self._findings.guarded(f"the retry of quarantined record {row.id}"):
                self._check_retry(row)
        self._findings.notes += [
            f"{count} records in quarantine: {reason}" for reason, count in self._findings.connection.execute(_REASONS)
        ]

    def _rows(self) -> Iterator[Quarantined]:
        after = 0
        while some := quarantined(self._findings.connection, after=after, limit=PAGE):
            yield from some
            after = some[-1].id

    def _check_retry(self, row: Row[Any]) -> None:
        if row.stream is None:
            self._findings.problem(f"the retry of quarantined record {row.id} is of no record that is there")
        elif row.digest is None or row.digest != json.loads(row.headers).get("ce_lapdigest"):
            where = frame_location(row.stream, row.partition, row.admission)
            self._findings.problem(f"quarantined record {row.id} did not become {where}, as its retry claims")


def retried_frames(findings: Findings) -> Retried:
    """The positions of frames that came from the quarantine, according to the retries.

    A retry may also lead to a frame that the stream brought itself, from another offset.
    """
    rows = findings.connection.execute(_RETRIED)
    return frozenset((row.stream, row.partition, row.admission) for row in rows if row.came == row.source_offset)


def _meta(record: Quarantined) -> FrameMeta | None:
    """The line that its manifest must hold; None for a row that nobody of us wrote."""
    try:
        return record.meta
    except TypeError:
        return None
