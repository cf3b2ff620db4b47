"""How many events a second go into the ledger and can be proven there, beside one JSON event a record.

`python bench/ingest.py [--quick] [--json] [--only NAME] [--events N] [--folder DIR]` prints
{"rows": [{"name", "value", "unit", "baseline", "ratio", "reach", "reached"}], "bytecode"}. Every event has the full
schema of `timing.measured` and ids of its own; commits are synced, digests checked. Sink and sealer are two processes,
as `lap sink` and `lap seal` are. Stages and progress go to stderr. Not a test: no figure here can fail the gate.
"""

import argparse
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import json_events
from figures import Row, log, printed, row, text, timed
from first_question import files_alone, first_answer, where_the_time_goes
from peaks import peak_mb, reset_peak
from sqlalchemy import text as statement
from stages import lines, stages
from timings import FINISHED, TIMING, attempts, timings

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import Sealed, seal
from lapledger.ledger.proof import verify
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.base import Stream
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.stream import KafkaStream
from lapledger.ledger.streams.producer import Producer
from lapledger.stack.kafka import KafkaServer
from lapledger.workflows.malloc import keep_freed_memory

BATCH = 64_000
"""Events that are made, and appended, at once."""

LONG_TAIL = 256
"""Frames in the tail that are worth a segment."""


@dataclass(slots=True)
class Bench:
    """What is to be measured, where, and what was."""

    folder: Path
    events: int
    only: str
    small: int
    attempts: int
    baseline: int
    peak: float = 0.0
    """Most memory that sink and sealer held together, in MB."""
    rows: list[Row] = field(default_factory=list)

    def wants(self, *names: str) -> bool:
        """True when one of these figures is asked for."""
        return any(self.only in name for name in names)

    def add(self, made: Row) -> None:
        """Keeps a figure that is asked for, and tells of it."""
        if self.only in made.name:
            self.rows.append(made)
            log(text(made))


def produce(stream: Stream, events: int, frame_rows: int, epoch: str) -> float:
    """Events a second that are appended, without the time in which they are made."""
    producer = Producer(stream, epoch, "bench", "0", frame_rows=frame_rows)
    took, done = 0.0, 0
    while done < events:
        made = timings(min(BATCH, events - done), done // BATCH)
        took += timed(lambda: producer.append_rows(TIMING, made.key, made.rows))  # noqa: B023  (called at once)
        done += len(made.rows)
    return events / took


@contextmanager
def sealer(folder: Path) -> Iterator[list[float]]:
    """A process that seals this ledger when its tail is long enough, and all of it at the end; gives its peak in MB."""
    peak: list[float] = []
    command = [sys.executable, __file__, "--seal", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        output, orders = process.stdout, process.stdin
        assert output is not None and orders is not None  # noqa: S101, PT018  (both are pipes)
        output.readline()  # it is ready
        yield peak
        orders.close()
        peak.append(float(output.read()))


def run_sealer(folder: Path) -> None:
    """The other end: seals until stdin ends, and once more."""
    keep_freed_memory()
    with closing(open_ledger(folder)) as ledger:
        warm()
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0.02)[0]:
            with reading(ledger.engine) as now:
                frames = now.execute(statement("SELECT count(*) FROM tail")).scalar_one()
            if frames >= LONG_TAIL:
                seal(ledger)
        seal(ledger)
    print(peak_mb(), flush=True)


def warm() -> None:
    """Seals a ledger of its own: what a first segment loads is no part of a service that runs for days."""
    with (
        tempfile.TemporaryDirectory(prefix="lap-warm-") as folder,
        closing(create_ledger(Path(folder), "warm", "now")) as ledger,
        closing(ledger.stream()) as stream,
    ):
        produce(stream, 2000, 1000, "epoch-w")
        drain(ledger, stream)
        seal(ledger)


def ingest(bench: Bench, ledger: Ledger, stream: Stream, events: int) -> float:
    """Events a second from the stream through the tail into segments; all are sealed at the end."""
    with sealer(ledger.root) as peak:
        reset_peak()
        start = time.perf_counter()
        drain(ledger, stream)
    took = time.perf_counter() - start
    bench.peak = max(bench.peak, peak_mb() + peak[0])
    if seal(ledger) != Sealed():
        raise SystemExit("the sealer left something in the tail")
    return events / took


LOCAL = {size: f"local stream to sealed, frames of {size:,}" for size in (1000, 16, 1)}
LOCAL_PRODUCE, VERIFY = "produce to local stream, frames of 1,000", "verify"
QUESTION, QUESTION_EXEC = "first named question, after imports", "first named question, from exec"
VERIFY_ATTEMPTS = "verify, attempts of five timings"
KAFKA_PRODUCE, KAFKA = "produce to Kafka, frames of 1,000", "Kafka to sealed, frames of 1,000"


def local(bench: Bench) -> None:
    """The local stream, at three sizes of frames, and the proof of the largest ledger."""
    if not bench.wants(*LOCAL.values(), LOCAL_PRODUCE, VERIFY):
        return
    rows = json_events.events([timings(bench.baseline, 0).rows])
    baseline, path = json_ingest(bench.folder / "local-json", rows)
    proof = len(rows) / timed(lambda: json_events.verify(path))
    for frame_rows, name in LOCAL.items():
        if bench.wants(name, *((LOCAL_PRODUCE, VERIFY) if frame_rows == 1000 else ())):
            local_of(bench, frame_rows, baseline, proof)
    if bench.wants(*LOCAL.values()):
        for frame_rows, frames in ((1, 100), (16, 100), (1000, 64)):
            parts = stages(frame_rows, frames, bench.folder / f"stages-{frame_rows}")
            log("\n".join(lines(f"where the time goes, frames of {frame_rows:,}", parts)))


def local_of(bench: Bench, frame_rows: int, baseline: float, proof: float) -> None:
    """Frames of one size: produced, ingested, and the large ones proven."""
    large = frame_rows == 1000
    events = bench.events if large else bench.small * frame_rows
    folder = bench.folder / f"local-{frame_rows}"
    with closing(create_ledger(folder, "bench", "now")) as ledger, closing(ledger.stream()) as stream:
        made = produce(stream, events, frame_rows, f"epoch-{frame_rows}")
        taken = ingest(bench, ledger, stream, events)
        if large:
            bench.add(row(LOCAL_PRODUCE, made))
        bench.add(row(LOCAL[frame_rows], taken, baseline=baseline, reach=1_000_000 if large else None))
        if large and bench.wants(VERIFY):
            checked(bench, ledger, VERIFY, events, baseline=proof, reach=2_000_000)


def checked(
    bench: Bench, ledger: Ledger, name: str, events: int, *, baseline: float | None = None, reach: float | None = None
) -> None:
    """Adds how many events a second are proven."""
    start = time.perf_counter()
    proof = verify(ledger)
    took = time.perf_counter() - start
    if proof.problems:
        raise SystemExit(f"the ledger is damaged: {proof.problems[0]}")
    bench.add(row(name, events / took, baseline=baseline, reach=reach))


def attempted(bench: Bench) -> None:
    """Whole attempts, sealed: the first named question that reads timings, and the proof of every attempt."""
    if not bench.wants(QUESTION, QUESTION_EXEC, VERIFY_ATTEMPTS):
        return
    events = 0
    folder = bench.folder / "attempts"
    with closing(create_ledger(folder, "bench", "now")) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-a", "bench", "0")
        for seed in range(bench.attempts // bench.small):
            made = attempts(bench.small, seed)
            producer.append_rows(TIMING, made.key, made.timings)
            producer.append_rows(FINISHED, made.key, made.finished)
            events += len(made.timings) + len(made.finished)
        drain(ledger, stream)
        seal(ledger)
        first_questions(bench, folder)
        checked(bench, ledger, VERIFY_ATTEMPTS, events)


def first_questions(bench: Bench, folder: Path) -> None:
    """Adds how long a new process takes to its first answer, beside DuckDB on the same Parquet files."""
    rows, answer, from_exec = first_answer(folder)
    alone, baseline = files_alone(folder)
    if rows != alone:
        raise SystemExit(f"the question found {rows} durations, the files alone have {alone}")
    where_the_time_goes(folder)
    large = bench.attempts >= 2_000_000  # ten million timings
    bench.add(row(QUESTION, answer, "s", baseline=baseline, reach=0.5 if large else None))
    bench.add(row(QUESTION_EXEC, from_exec, "s", reach=1.2 if large else None))


def json_ingest(folder: Path, rows: list[dict[str, object]]) -> tuple[float, Path]:
    """Events a second of the baseline on a local stream of its own, and the Parquet file that it made."""
    with closing(create_ledger(folder, "bench", "now").stream()) as stream:
        json_events.produce(stream, rows)
        start = time.perf_counter()
        path = json_events.ingest(stream, folder, len(rows))
        return len(rows) / (time.perf_counter() - start), path


def kafka(bench: Bench) -> None:
    """A broker of our own: produced there, and from there into a ledger."""
    if not bench.wants(KAFKA_PRODUCE, KAFKA):
        return
    server = KafkaServer(bench.folder / "kafka")
    server.start()
    try:
        settings = KafkaSettings(servers=server.bootstrap, prefix="frames")
        with closing(KafkaStream.create(KafkaSettings(servers=server.bootstrap, prefix="json"))) as stream:
            rows = json_events.events([timings(bench.baseline, 0).rows])
            made = len(rows) / timed(lambda: json_events.produce(stream, rows))
            folder = bench.folder / "kafka-json"
            folder.mkdir()
            taken = len(rows) / timed(lambda: json_events.ingest(stream, folder, len(rows)))
        ledger = create_ledger(bench.folder / "kafka-ledger", "bench", "now")
        with closing(ledger), closing(KafkaStream.create(settings)) as stream:
            rate = produce(stream, bench.events, 1000, "epoch-k")
            bench.add(row(KAFKA_PRODUCE, rate, baseline=made, reach=700_000))
            bench.add(row(KAFKA, ingest(bench, ledger, stream, bench.events), baseline=taken, reach=700_000))
    finally:
        server.stop()


def main() -> None:
    """Prints the figures, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few events: done within 50 s")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME", help="figures whose name has this in it")
    parser.add_argument("--events", type=int, metavar="N", help="events in frames of 1,000 (10 million)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the files lie meanwhile; on a disk")
    parser.add_argument("--seal", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.seal:
        run_sealer(given.seal)
        return
    keep_freed_memory()
    warm()
    events = given.events or (3_072_000 if given.quick else 10_240_000)
    small, attempts_count, baseline = (1000, 4000, 10_000) if given.quick else (20_000, 2_000_000, 160_000)
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="lap-bench-") as folder:
        bench = Bench(Path(folder), events, given.only, small, attempts_count, baseline)
        for part in (local, attempted, kafka):
            part(bench)
        if bench.peak:
            bench.add(row("peak memory of sink and sealer", bench.peak, "MB", reach=1000))
    print(printed(bench.rows, as_json=given.json))


if __name__ == "__main__":
    main()
