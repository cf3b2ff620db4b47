"""SQL statements that several modules run: each text stands once. Statements with one user stay beside it."""

from sqlalchemy import text

LEDGER_IDENTITIES = text("SELECT identity FROM ledger")
"""One row in a sound ledger."""

MANIFEST_CHAIN = text("SELECT manifest FROM segment ORDER BY ordinal")
SUPERSEDED = text("SELECT ordinal FROM supersession")
SEGMENTS = text(
    "SELECT ordinal, name, manifest, type, version, frames, rows, bytes, admissions FROM segment"
    " WHERE type = coalesce(:type, type) AND version = coalesce(:version, version) ORDER BY ordinal"
)
"""The columns of `Segment`, of one type and version, or of all where both are null."""

FRAME_DIGESTS = text(
    "SELECT admission, digest FROM frame WHERE stream = :stream AND partition = :partition ORDER BY admission"
)
DIGESTS_UP_TO = text(
    "SELECT digest FROM frame WHERE stream = :stream AND partition = :partition AND admission <= :last"
    " ORDER BY admission"
)
LAST_QUARANTINED = text("SELECT coalesce(max(id), 0) FROM quarantine")
RESTART_QUARANTINE_IDS = text(
    "SELECT setval(pg_get_serial_sequence('quarantine', 'id'), coalesce(max(id), 0) + 1, false) FROM quarantine"
)
"""PostgreSQL only: ids continue after rows that were inserted with their ids."""
