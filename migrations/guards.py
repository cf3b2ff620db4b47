"""The triggers that keep immutable rows as they are, for SQLite and PostgreSQL: plain data in, DDL statements out.

SQLite's INSERT OR REPLACE removes rows without firing a delete trigger, so inserting over an existing key is refused
too; PostgreSQL's TRUNCATE passes row triggers, so it has one of its own.
"""

from collections.abc import Iterator

IMMUTABLE = {
    "ledger": (("identity",),),
    "frame": (("stream", "partition", "admission"), ("stream", "partition", "epoch", "sequence")),
    "segment": (("ordinal",), ("name",), ("manifest",)),
    "segment_range": (("ordinal", "stream", "partition"),),
    "supersession": (("ordinal",),),
    "quarantine": (("id",),),
    "quarantine_retry": (("id",),),
}
"""Tables whose rows never change nor go, with their unique keys."""

TAIL_KEY = ("stream", "partition", "admission")
POSITION_KEY = ("stream", "partition")

_COVERED = (
    "EXISTS (SELECT 1 FROM segment_range r WHERE r.type = OLD.type AND r.version = OLD.version"
    " AND r.stream = OLD.stream AND r.partition = OLD.partition AND OLD.admission BETWEEN r.first AND r.last)"
)
_BACKWARD = (
    "NEW.stream <> OLD.stream OR NEW.partition <> OLD.partition OR NEW.admissions < OLD.admissions"
    " OR NEW.lease_epoch < OLD.lease_epoch OR NEW.duplicates < OLD.duplicates OR NEW.moved < OLD.moved"
    " OR NEW.moves < OLD.moves OR NEW.moved_id < OLD.moved_id"
    " OR (NEW.admissions = OLD.admissions AND NEW.head <> OLD.head)"
    " OR NEW.next_position < OLD.next_position OR (OLD.identity <> '' AND NEW.identity <> OLD.identity)"
)
_MESSAGES = {
    "tail": "a frame of the tail goes only when a segment covers it",
    "stream_position": "a position never goes back",
}
_NAMED = "EXISTS (SELECT 1 FROM ledger)"
TABLES = (*IMMUTABLE, "tail", "stream_position")


def _message(table: str) -> str:
    return _MESSAGES.get(table, f"rows of {table} never change")


def sqlite_guards() -> Iterator[str]:
    """The statements that install all guards in SQLite."""
    yield _sqlite("ledger", "second", "BEFORE INSERT", _NAMED)
    for table, keys in IMMUTABLE.items():
        yield _sqlite(table, "update", "BEFORE UPDATE", "1")
        yield _sqlite(table, "delete", "BEFORE DELETE", "1")
        yield _sqlite(table, "replace", "BEFORE INSERT", _exists(table, keys))
    yield _sqlite("tail", "update", "BEFORE UPDATE", "1")
    yield _sqlite("tail", "delete", "BEFORE DELETE", f"NOT {_COVERED}")
    yield _sqlite("tail", "replace", "BEFORE INSERT", _exists("tail", (TAIL_KEY,)))
    yield _sqlite("stream_position", "update", "BEFORE UPDATE", f"{_BACKWARD} OR NEW.rowid <> OLD.rowid")
    yield _sqlite("stream_position", "delete", "BEFORE DELETE", "1")
    yield _sqlite("stream_position", "replace", "BEFORE INSERT", _exists("stream_position", (POSITION_KEY,)))


def _sqlite(table: str, name: str, when: str, condition: str) -> str:
    raising = f"SELECT RAISE(ABORT, 'immutable: {_message(table)}')"
    return f"CREATE TRIGGER {table}_no_{name} {when} ON {table} WHEN {condition} BEGIN {raising}; END"


def _exists(table: str, keys: tuple[tuple[str, ...], ...]) -> str:
    """True when an insert meets a row under one of the keys; `rowid` too, as a REPLACE may name it."""
    same = [" AND ".join(f"o.{column} = NEW.{column}" for column in key) for key in (*keys, ("rowid",))]
    return " OR ".join(f"EXISTS (SELECT 1 FROM {table} o WHERE {condition})" for condition in same)  # noqa: S608


def postgres_guards() -> Iterator[str]:
    """The statements that install all guards in PostgreSQL."""
    for table in TABLES:
        yield from _postgres(table, "truncate", "BEFORE TRUNCATE", "STATEMENT", "true")
    yield from _postgres("ledger", "second", "BEFORE INSERT", "ROW", _NAMED)
    for table in IMMUTABLE:
        yield from _postgres(table, "change", "BEFORE UPDATE OR DELETE", "ROW", "true")
    yield from _postgres("tail", "update", "BEFORE UPDATE", "ROW", "true")
    yield from _postgres("tail", "delete", "BEFORE DELETE", "ROW", f"NOT {_COVERED}")
    yield from _postgres("stream_position", "update", "BEFORE UPDATE", "ROW", _BACKWARD)
    yield from _postgres("stream_position", "delete", "BEFORE DELETE", "ROW", "true")


def _postgres(table: str, name: str, when: str, level: str, condition: str) -> Iterator[str]:
    guard = f"{table}_no_{name}"
    gone = "NULL" if level == "STATEMENT" else "OLD" if "DELETE" in when and "UPDATE" not in when else "NEW"
    yield (
        f"CREATE FUNCTION {guard}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {condition} THEN"
        f" RAISE EXCEPTION 'immutable: {_message(table)}'; END IF; RETURN {gone}; END $$"
    )
    yield f"CREATE TRIGGER {guard} {when} ON {table} FOR EACH {level} EXECUTE FUNCTION {guard}()"
    yield f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {guard}"
