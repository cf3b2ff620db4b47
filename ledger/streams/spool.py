"""A producer's stream that outlives its broker: what cannot be appended now waits in a durable file, in order.

Only a server that does not answer is waited for (`Unavailable`); what it refuses is raised at once. Reading, positions
and groups are those of the stream behind.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapledger.ledger.errors import Fault, SpoolFull, Unavailable
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.base import Group, Partition, Position, Stored, Stream, record_bytes
from lapledger.ledger.streams.spool_file import SpoolFile, deliver_oldest

RESERVE = 8
"""One part in so many of a spool is kept for what runs already when no more work is taken."""


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """How much may wait (bytes, as `record_bytes` counts), how long a full spool is borne, how often to try again."""

    bytes: int = 1 << 30
    full_seconds: float = 300.0
    retry_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for the broker: records and their bytes; `what` is the change: `away`, `full` or `back`."""

    what: str
    records: int
    bytes: int


class Spooled:
    """A `Stream` in front of another for one producer epoch. Threads may share it.

    Records reach the stream behind in the order of their appending. After an unknown outcome some may reach it twice,
    with the same sequence and digest: duplicates to the ledger.
    """

    def __init__(
        self,
        stream: Stream,
        path: Path,
        *,
        limits: SpoolLimits = SpoolLimits(),
        on_change: Callable[[Waiting], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is written yet; `path` is made when the first record must wait, in a folder that exists."""
        self._stream = stream
        self._path = path
        self._limits = limits
        self._on_change = on_change
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._file: SpoolFile | None = None
        self._away_since: float | None = None
        self._failure: BaseException | None = None
        self._pump: threading.Thread | None = None

    @property
    def max_record_bytes(self) -> int:
        """That of the stream behind."""
        return self._stream.max_record_bytes

    @property
    def waiting(self) -> int:
        """Records that are not delivered yet."""
        return self._file.records if self._file is not None else 0

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when all records are durable, behind those before: on the stream, or in the spool.

        Waits while the spool is full; SpoolFull when it stays so for `full_seconds`, then none of these was stored.
        """
        size = sum(map(record_bytes, records))
        with self._changed:
            while True:
                self._raise_failure()
                if self._away_since is None and self._appended(stream, partition, records):
                    return
                self._check_sizes(records, size)
                if not self._wait(lambda: self._has_room(size)):
                    raise self._full()
                if self._away_since is not None:  # else it came back meanwhile, and what waited is there
                    break
            self._open_file().put(stream, partition, records)
            failpoint("spool.stored")

    def ready(self) -> None:
        """Returns when there is room for what more work will bring; SpoolFull when there is none for `full_seconds`.

        A caller that checks before each work finishes what runs: its results still fit when no more work is taken.
        """
        with self._changed:
            self._raise_failure()
            if not self._wait(lambda: self._has_room(self._limits.bytes // RESERVE)):
                raise self._full()

    def flush(self, seconds: float) -> None:
        """Returns when nothing waits any more; Unavailable after these seconds: what waits stays for the next start."""
        with self._changed:
            self._raise_failure()
            if not self._wait(lambda: self._away_since is None, seconds):
                raise Unavailable(
                    f"{self.waiting} records still wait in {self._path}, as the broker is away; nothing is lost: they"
                    " are delivered when a command starts here while it runs"
                )

    def close(self) -> None:
        """Stops delivering and releases the file; what was not delivered stays in it. The stream behind stays open."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._pump is not None:
            self._pump.join(self._limits.retry_seconds)  # one that waits for the broker ends with the process
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def identity(self, stream: str) -> str:
        """That of the stream behind."""
        return self._stream.identity(stream)

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """Records of the stream behind."""
        return self._stream.read(stream, partition, position, limit)

    def ends(self) -> Mapping[Partition, Position]:
        """Ends of the stream behind; what waits is not counted."""
        return self._stream.ends()

    def unread(self) -> Mapping[Partition, int]:
        """As in the stream behind."""
        return self._stream.unread()

    def trim(self, stream: str, partition: int, position: Position) -> None:
        """Trims the stream behind."""
        self._stream.trim(stream, partition, position)

    def join(self, group: str, streams: Sequence[str], member: str) -> Group:
        """Joins a group of the stream behind."""
        return self._stream.join(group, streams, member)

    def _appended(self, stream: str, partition: int, records: Sequence[Record]) -> bool:
        """Whether the stream took the records; when it does not answer, spooling begins."""
        try:
            self._stream.append(stream, partition, records)
        except Unavailable:
            file = self._open_file()
            self._away_since = self._monotonic()
            self._notify("away")
            if self._pump is None:
                self._pump = threading.Thread(target=self._deliver, args=(file,), name="lap-spool", daemon=True)
                self._pump.start()
            return False
        return True

    def _open_file(self) -> SpoolFile:
        if self._file is None:
            self._file = SpoolFile.claimed(self._path)
            if self._file is None:
                raise Fault(f"another process uses the spool {self._path}; two producers never share an epoch")
        return self._file

    def _check_sizes(self, records: Sequence[Record], size: int) -> None:
        """Fault for what the stream would never take, as it would stop all behind it; SpoolFull for too much."""
        largest = max(map(record_bytes, records), default=0)
        if largest > self.max_record_bytes:
            raise Fault(
                f"cannot append: a record of {largest} bytes is too large, {self.max_record_bytes} are the most"
            )
        if size > self._limits.bytes:
            raise SpoolFull(
                f"the broker is away and {size} bytes do not fit the spool of {self._limits.bytes}; nothing of them was"
                " stored; start the broker, or enlarge the setting `spool_mb`, and run it again"
            )

    def _has_room(self, size: int) -> bool:
        return self._away_since is None or self._open_file().bytes + size <= self._limits.bytes

    def _wait(self, come: Callable[[], bool], seconds: float | None = None) -> bool:
        """Whether something came true in time; raises what stopped the delivery meanwhile."""
        if come():
            return True
        if seconds is None:
            seconds = self._limits.full_seconds
            self._notify("full")
        done = self._changed.wait_for(lambda: self._failure is not None or come(), seconds)
        self._raise_failure()
        return done

    def _full(self) -> SpoolFull:
        away = 0.0 if self._away_since is None else self._monotonic() - self._away_since
        return SpoolFull(
            f"the spool {self._path} is full and the broker away for {away:.0f} s; start the broker and run it again,"
            f" the {self.waiting} records that wait are delivered then"
        )

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _notify(self, what: str) -> None:
        file = self._file
        self._on_change(Waiting(what, file.records if file else 0, file.bytes if file else 0))

    def _deliver(self, file: SpoolFile) -> None:
        """Brings what waits to the stream, as long as there is something and nobody stops it."""
        try:
            while not self._stop.is_set():
                if not self._delivered(file):
                    self._stop.wait(self._limits.retry_seconds)
        except BaseException as error:  # noqa: BLE001  (handed to whoever appends next)
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _delivered(self, file: SpoolFile) -> bool:
        """Whether to go on at once: something was delivered; False while the broker is away, or nothing waits."""
        with self._changed:
            if file.records == 0 and self._away_since is not None:
                self._away_since = None
                self._notify("back")
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._away_since is not None or self._stop.is_set())
            if self._stop.is_set():
                return False
        try:
            more = deliver_oldest(self._stream, file)
        except Unavailable:
            return False
        with self._changed:
            self._changed.notify_all()
        return more
