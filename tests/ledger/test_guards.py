"""What is immutable in SQL stays as it is, whoever tries, as the user that the application itself is."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import inspect, text

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Fault
from lapledger.ledger.frames.frame import Record, encode
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.sql.engine import reading, writing
from lapledger.migrations.guards import IMMUTABLE, POSITION_KEY, TAIL_KEY
from tests.ledger.facts import chain_frames, decision
from tests.support.databases import Kind, Server

KEYS = {**IMMUTABLE, "tail": (TAIL_KEY,), "stream_position": (POSITION_KEY,)}


@pytest.fixture(scope="module")
def ledger(
    kind_server: Server | None, empty_ledger: Location, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """A ledger with rows in every guarded table, which all attempts leave as it is."""
    location = Kind(tmp_path_factory.mktemp("guards"), kind_server).copy(empty_ledger, "ledger")
    with closing(open_ledger(location)) as guarded:
        yield filled(guarded)


def filled(ledger: Ledger) -> Ledger:
    """Sealed frames, frames of the tail, and a retried record of the quarantine."""
    frames = [encode(frame) for frame in chain_frames([decision(n) for n in range(6)])]
    partition = int(frames[0].headers["ce_lappartition"])
    with closing(ledger.stream()) as stream:
        stream.append("facts", partition, [*frames[:2], Record({}, b"broken")])
        drain(ledger, stream)
        seal(ledger)
        stream.append("facts", partition, frames[2:5])
        drain(ledger, stream)
    run(ledger, "INSERT INTO quarantine_retry (id, admission, seen) VALUES (1, 5, '')")
    run(ledger, 'INSERT INTO supersession (ordinal, "by", since) VALUES (1, 2, 0)')
    return ledger


def run(ledger: Ledger, statement: str) -> None:
    """One statement in a transaction of its own."""
    with writing(ledger.engine) as connection:
        connection.execute(text(statement))


def contents(ledger: Ledger, table: str) -> list[tuple[object, ...]]:
    """All rows of a table."""
    with reading(ledger.engine) as connection:
        return sorted(tuple(row) for row in connection.execute(text(f"SELECT * FROM {table}")))


def columns(ledger: Ledger, table: str) -> list[str]:
    """The names of a table's columns, quoted."""
    return [f'"{column["name"]}"' for column in inspect(ledger.engine).get_columns(table)]


def refused(ledger: Ledger, table: str, statement: str) -> None:
    """Fails unless the guards refuse a statement and every row stays."""
    before = contents(ledger, table)
    assert before, table
    with pytest.raises(Fault, match="immutable: "):
        run(ledger, statement)
    assert contents(ledger, table) == before


@pytest.mark.parametrize("table", IMMUTABLE)
def test_rows_of_facts_are_never_updated_nor_deleted(ledger: Ledger, table: str) -> None:
    """Not even to the values that they have."""
    name = columns(ledger, table)[-1]
    refused(ledger, table, f"UPDATE {table} SET {name} = {name}")
    refused(ledger, table, f"DELETE FROM {table}")


@pytest.mark.parametrize("table", KEYS)
def test_rows_are_not_written_over(ledger: Ledger, table: str) -> None:
    """Under no unique key: by an insert that updates on conflict, and in SQLite by one that replaces."""
    names = columns(ledger, table)
    if table == "stream_position":
        names = [name for name in names if name != '"next_position"'] + ['"next_position"']
    for key in KEYS[table]:
        free = [name for name in KEYS[table][0] if name not in key and name in ("ordinal", "admission")]
        values = ", ".join(f"{name} + 1000" if name.strip('"') in free else name for name in names)
        values = values.replace('"next_position"', "-1")
        source = f"({', '.join(names)}) SELECT {values} FROM {table} WHERE true"
        change = f"DO UPDATE SET {names[-1]} = excluded.{names[-1]}"
        refused(ledger, table, f"INSERT INTO {table} {source} ON CONFLICT ({', '.join(key)}) {change}")
        if ledger.engine.dialect.name == "sqlite":
            refused(ledger, table, f"INSERT OR REPLACE INTO {table} {source}")
            refused(ledger, table, f"REPLACE INTO {table} {source}")


@pytest.mark.parametrize("table", KEYS)
def test_no_guard_is_passed_by(ledger: Ledger, table: str) -> None:
    """SQLite: a new row with the hidden number of an old one, an old row that moves there; PostgreSQL: TRUNCATE."""
    if ledger.engine.dialect.name == "postgresql":
        refused(ledger, table, f"TRUNCATE {table}")
        refused(ledger, table, f"TRUNCATE {table} CASCADE")
        return
    names = [name for name in columns(ledger, table) if (table, name) != ("quarantine", '"id"')]
    keys = {'"ordinal"', '"admission"', '"partition"', '"identity"', '"id"'}
    values = ", ".join(f"{name} || '9'" if name in keys else name for name in names)
    refused(
        ledger, table, f"INSERT OR REPLACE INTO {table} (rowid, {', '.join(names)}) SELECT rowid, {values} FROM {table}"
    )
    refused(ledger, table, f"UPDATE OR REPLACE {table} SET rowid = rowid + 1")


def test_guards_hold_for_a_session_that_applies_a_replica(ledger: Ledger) -> None:
    """PostgreSQL leaves plain triggers out there."""
    if ledger.engine.dialect.name == "postgresql":
        refused(ledger, "frame", "SET LOCAL session_replication_role = replica; DELETE FROM frame")


def test_a_ledger_is_named_once(ledger: Ledger) -> None:
    """A second identity would make two ledgers of one."""
    refused(ledger, "ledger", "INSERT INTO ledger (identity, created) VALUES ('another', '')")


def test_a_frame_leaves_the_tail_only_under_a_segment_that_covers_it(both: Ledger) -> None:
    """What is not sealed stays; what a segment covers, of its own type, may go."""
    ledger = filled(both)
    refused(ledger, "tail", "DELETE FROM tail")
    refused(ledger, "tail", "UPDATE tail SET payload = payload")
    refused(ledger, "tail", "DELETE FROM tail WHERE admission = 3")
    run(
        ledger,
        "INSERT INTO segment_range (ordinal, stream, partition, type, version, first, last)"
        " SELECT 9, stream, partition, 'timing.measured', version, 1, 9 FROM tail WHERE admission = 3",
    )
    refused(ledger, "tail", "DELETE FROM tail WHERE admission = 3")
    run(
        ledger,
        "INSERT INTO segment_range (ordinal, stream, partition, type, version, first, last)"
        " SELECT 10, stream, partition, type, version, 3, 4 FROM tail WHERE admission = 3",
    )
    run(ledger, "DELETE FROM tail WHERE admission BETWEEN 3 AND 4")
    refused(ledger, "tail", "DELETE FROM tail")
    assert len(contents(ledger, "tail")) == 1


@pytest.mark.parametrize(
    "change",
    [
        "next_position = next_position - 1",
        "admissions = admissions - 1",
        "duplicates = duplicates - 1",
        "lease_epoch = lease_epoch - 1",
        "moves = moves - 1",
        "moved = moved - 1",
        "moved_id = moved_id - 1",
        "identity = 'another'",
        "head = 'another'",
        "stream = 'elsewhere'",
        "partition = partition + 100",
    ],
)
def test_a_position_never_goes_back(ledger: Ledger, change: str) -> None:
    """Neither its numbers, nor to another stream, nor its head without an admission."""
    refused(ledger, "stream_position", f"UPDATE stream_position SET {change} WHERE admissions > 0")
    refused(ledger, "stream_position", "DELETE FROM stream_position")


def test_gaps_close_and_leases_change_hands(ledger: Ledger) -> None:
    """What tells of now is free to change."""
    run(
        ledger, "INSERT INTO gap (stream, partition, epoch, first_missing, last_missing) VALUES ('facts', 0, 'e', 1, 2)"
    )
    run(ledger, "DELETE FROM gap")
    run(ledger, "INSERT INTO lease (name, epoch, holder, until) VALUES ('seal', 0, '', 0)")
    run(ledger, "UPDATE lease SET holder = 'me', until = 9")
    run(ledger, "UPDATE stream_position SET lease_epoch = lease_epoch + 1, lease_holder = 'me', lease_until = 9")
