"""Named questions to the ledger at a cut, answered by DuckDB over sealed segments and tail alike.

The only module that imports duckdb. The database lives in memory and has no access to files, network or extensions: it
sees the arrow tables and datasets handed to it and nothing else.
"""

import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from lapledger.ledger.errors import UserError, nearest
from lapledger.ledger.events import EVENTS, EventType, latest, steps
from lapledger.ledger.questions.spill import make_spill_folder
from lapledger.ledger.questions.views import BY_NAME, View, raw_name
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import stored_versions
from lapledger.ledger.store.segments import ORIGIN_COLUMNS, Segment

TIMEOUT_S = 60.0
MEMORY = "1GB"
SPILL = "4GB"
MAX_ANSWER_BYTES = 2 << 30
"""Bounds of a user's question: its time, the memory and the disk of the database, and the size of its answer."""
_BATCH_ROWS = 65_536
_NAME = re.compile(r"[a-z_]+")  # a name that is no table loads nothing; a column named like a table loads too much
_RAW = {raw_name(name): name for name, _ in EVENTS}

CAMPAIGNS = """
SELECT c.*, d.reason AS closed, d.surplus, d.faults, coalesce(e.done, 0) AS done
FROM campaign c LEFT JOIN closing d USING (campaign_id) LEFT JOIN (
  SELECT campaign_id, count(DISTINCT work_id) AS done FROM execution_finished
  WHERE outcome <> 'sandbox_fault' GROUP BY campaign_id) e USING (campaign_id)
ORDER BY c.campaign_id
"""
DONE_WORKS = "SELECT work_id FROM execution WHERE accepted AND campaign_id = $campaign"
ATTEMPTS = """
SELECT count(*) FILTER (accepted) AS accepted, count(*) FILTER (surplus) AS surplus,
  count(*) FILTER (outcome = 'sandbox_fault') AS faults
FROM execution WHERE campaign_id = $campaign
"""
OUTCOMES = """
SELECT program_id, test_id, outcome, detail, attempt_id, timings_digest
FROM execution WHERE accepted AND campaign_id = $campaign ORDER BY program_id, test_id
"""
DURATIONS = """
SELECT program_id, test_id, median(wall_ns)::BIGINT AS wall_ns
FROM timing WHERE NOT warmup AND accepted AND wall_ns IS NOT NULL GROUP BY program_id, test_id
"""
ATTEMPT_TIMINGS = """
SELECT * FROM timing WHERE campaign_id = $campaign AND program_id = $program ORDER BY test_id, attempt_id, repetition
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a user's question that were kept, and how many came after them."""

    table: pa.Table
    more: int


class Questions:
    """A connection to one ledger at one cut; views and raw tables are loaded when a question names them.

    Nothing of a segment is read before a question needs it, and then only the columns and row groups that it needs.
    """

    def __init__(self, ledger: Ledger, cut: Cut | None = None) -> None:
        self.ledger = ledger
        self.cut = cut or ledger.cut()
        folder, remove = make_spill_folder()
        self._finalizer = weakref.finalize(self, remove)
        bounds = {"temp_directory": folder, "max_temp_directory_size": SPILL} if folder else {"temp_directory": ""}
        self._connection = duckdb.connect(":memory:", config={"enable_external_access": "false", **bounds})
        self._connection.execute("SET python_enable_replacements = false")
        self._connection.execute("SET autoinstall_known_extensions = false")
        self._connection.execute("SET enable_progress_bar = false")  # it would be drawn into the answer on stdout
        self._loaded: set[str] = set()
        self._segments: list[Segment] = []

    def query(self, sql: str, **parameters: Any) -> pa.Table:
        """The answer to one of this module's questions; Fault when a segment that it needs is missing or broken."""
        self._load(_NAME.findall(sql.lower()))
        with self._scanning():
            return self._connection.sql(sql, params=parameters or None).to_arrow_table()

    def rows(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        """The answer as a list of rows."""
        answer: list[dict[str, Any]] = self.query(sql, **parameters).to_pylist()
        return answer

    def query_user(
        self,
        sql: str,
        *,
        threads: int = 2,
        parameters: Mapping[str, Any] | None = None,
        timeout: float = TIMEOUT_S,
        limit_rows: int | None = None,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """The answer to a user's own SELECT, up to `limit_rows` rows of it; the others are counted, never held.

        UserError when it is anything but one read-only statement, or does not keep to `timeout` (seconds), to the
        memory and the disk that a question may use, or to `max_bytes`, the size of the answer.
        """
        try:
            statements = duckdb.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UserError("only one SELECT statement is allowed; see `lap sql --views` for what can be read")
            self._load(_NAME.findall(sql.lower()))
            self._connection.execute(f"SET memory_limit = '{MEMORY}'")
            self._connection.execute("SET threads = $1", [threads])
            self._connection.execute("SET lock_configuration = true")
            with self._scanning(), self._stopped_after(timeout):
                relation = self._connection.sql(sql, params=dict(parameters or {}) or None)
                return _kept(relation.to_arrow_reader(_BATCH_ROWS), limit_rows, max_bytes)
        except (duckdb.Error, OSError) as error:  # a reader raises the database's errors as OSError
            lines = [line.strip() for line in str(error).splitlines()]
            reason = " ".join([lines[0], *(line for line in lines[1:] if line.startswith(("Did you", "Candidate")))])
            missing = re.search(r"Table with name (\w+) does not exist", reason)
            if missing:
                reason = f"no view {missing[1]!r}{nearest(missing[1], (*BY_NAME, *_RAW))}"
            see = " See" if reason.endswith("?") else "; see"
            raise UserError(f"{reason}{see} `lap sql --views` for what can be read") from None

    def close(self) -> None:
        """Frees the connection, and what it has written to the disk."""
        self._connection.close()
        self._finalizer()

    @contextmanager
    def _stopped_after(self, seconds: float) -> Iterator[None]:
        """Interrupts the question after so many seconds: UserError."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._connection.interrupt()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (duckdb.Error, OSError):
            if late.is_set():
                raise UserError(
                    f"the question took longer than {seconds:g} s; ask for less, or allow more with --timeout"
                ) from None
            raise
        finally:
            timer.cancel()

    @contextmanager
    def _scanning(self) -> Iterator[None]:
        """Raise the Fault for a missing or broken segment in place of the database's own error."""
        try:
            yield
        except (duckdb.Error, OSError):
            self.ledger.segments.check_opens(self._segments)
            raise

    def _load(self, names: Iterable[str]) -> None:
        for name in sorted(set(names) - self._loaded):
            if name in BY_NAME:
                self._load_view(BY_NAME[name])
            elif name in _RAW:
                self._load_raw(name, latest(_RAW[name]))
            self._loaded.add(name)

    def _load_raw(self, name: str, declared: EventType) -> None:
        """A table of all events of a type: the union of sealed rows and tail over all stored versions."""
        columns = ", ".join(f'"{column}"' for column in (*declared.schema.names, *ORIGIN_COLUMNS))
        parts = []
        for version in stored_versions(self.ledger, declared.name, declared.version, self.cut):
            self._segments += version.segments
            part = f"{name}_v{version.declared.version}"
            self._connection.register(f"{part}_sealed", version.sealed)
            self._connection.register(f"{part}_tail", version.tail)
            added = steps(version.declared, declared)
            if added.num_columns:
                self._connection.register(f"{part}_added", added)
            more = f", {part}_added" if added.num_columns else ""
            parts += [f"SELECT {columns} FROM {part}_{source}{more}" for source in ("sealed", "tail")]  # noqa: S608
        # Every name is a constant of `ledger.events`, never a user's text.
        self._connection.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")

    def _load_view(self, view: View) -> None:
        self._load(raw_name(need) for need in view.needs)
        # The name and the text are constants of `ledger.questions.views`, never a user's text.
        self._connection.execute(f'CREATE VIEW "{view.name}" AS {view.sql}')


def _kept(reader: pa.RecordBatchReader, limit_rows: int | None, max_bytes: int) -> Answer:
    kept, rows, size = [], 0, 0
    for batch in reader:
        wanted = batch if limit_rows is None else batch.slice(0, max(limit_rows - rows, 0))
        rows += batch.num_rows
        if wanted.num_rows:
            size += wanted.nbytes
            kept.append(wanted)
        if size > max_bytes:
            raise UserError(
                f"the answer takes more than {max_bytes >> 20} MiB; select fewer rows or columns, or aggregate"
            )
    table = pa.Table.from_batches(kept, reader.schema)
    return Answer(table, rows - table.num_rows)


def plain_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as Python's values; dates and times beyond Python's range as the database writes them."""
    return list(zip(*(_plain_column(column) for column in table.columns), strict=True))


def _plain_column(column: pa.ChunkedArray) -> list[Any]:
    try:
        if not pa.types.is_interval(column.type):
            return list(column.to_pylist())
    except (OverflowError, ValueError, pa.ArrowException):
        pass
    with duckdb.connect(":memory:") as connection:
        texts = connection.from_arrow(pa.table({"value": column})).project("CAST(value AS VARCHAR) AS value")
        return list(texts.to_arrow_table()["value"].to_pylist())
