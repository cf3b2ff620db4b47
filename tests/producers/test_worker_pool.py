"""A worker that is offered works again and again: what it has done, runs or gave up it never takes twice."""

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.ledger.codec.canonical import work_id
from lapledger.ledger.disk import LocalFiles
from lapledger.ledger.events import ExecutionFinished, ExecutionRequested, from_batch
from lapledger.ledger.frames.frame import decode
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer, partition_of
from lapledger.producers.campaigns.attempts import WorkerFacts
from lapledger.producers.campaigns.worker import MAX_FAULTS_PER_WORK, Material, Worker, WorkerContext
from lapledger.producers.sandbox.limits import Execution, Interpreter, Limits
from lapledger.producers.sandbox.output_checker import AnswerFlags

PROBLEM = "p.0"
SECONDS = 30.0
"""How long a test waits for another thread before it fails."""


def request(number: int) -> ExecutionRequested:
    """The work in that place."""
    program, test = f"{PROBLEM}/program-{number}", f"{PROBLEM}/test"
    return ExecutionRequested(
        work_id=work_id("c", program, test, 0),
        campaign_id="c",
        problem_id=PROBLEM,
        program_id=program,
        test_id=test,
        block=0,
        position=number,
        lane=str(number % 8),
    )


REQUESTS = [request(number) for number in range(6)]


class Scripted:
    """A sandbox whose programs end as the test says, when the test says."""

    isolation = "plain"
    interpreter = Interpreter(Path("python"), "3", "0" * 64, Path("/"))
    warning = ""

    def __init__(self) -> None:
        self.outcomes: dict[bytes, str] = {}
        self.begun: queue.Queue[int] = queue.Queue()
        self.gate = threading.Event()
        self.gate.set()

    def run(
        self,
        source: bytes | Path,
        stdin: Path,
        *,
        output: Path,
        limits: Limits,
        slot: int = 0,
        arguments: Sequence[str] = (),
    ) -> Execution:
        """Waits at the gate; a program's source is its number."""
        assert isinstance(source, Path)
        number = int(source.read_bytes())
        self.begun.put(number)
        assert self.gate.wait(SECONDS)
        output.write_bytes(b"answer")
        if self.outcomes.get(source.read_bytes()) == "fault":
            return Execution("sandbox_fault", fault="broken")
        return Execution("ok", exit_code=0, wall_ns=1)


@pytest.fixture
def sandbox() -> Scripted:
    """The sandbox of the test."""
    return Scripted()


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[LocalStream]:
    """Where outcomes go."""
    with closing(LocalStream.create(tmp_path / "stream.sqlite", "word")) as made:
        yield made


@pytest.fixture
def bench(sandbox: Scripted, tmp_path: Path) -> WorkerContext:
    """One slot, and the blobs of six programs."""
    for name in ("blobs", "scratch"):
        (tmp_path / name).mkdir()
    blobs = Blobs(LocalFiles(tmp_path / "blobs"))
    sources = {item.program_id: blobs.put(str(item.position).encode()) for item in REQUESTS}
    numbers = iter(range(1000))
    return WorkerContext(
        sandbox=sandbox,
        limits=Limits(10**9),
        repetitions=1,
        warmups=0,
        slots=1,
        blobs=blobs,
        material=Material(
            sources=sources,
            inputs={f"{PROBLEM}/test": blobs.put(b"input")},
            answers={f"{PROBLEM}/test": blobs.put(b"answer")},
            flags={f"{PROBLEM}/test": AnswerFlags.parse("")},
            arguments={},
        ),
        facts=WorkerFacts(worker_id="w", host="", interpreter="", isolation="plain", startup_ns=1),
        scratch=tmp_path / "scratch",
        monotonic_ns=lambda: 0,
        new_id=lambda: f"attempt-{next(numbers)}",
        utc_now=lambda: "now",
    )


@pytest.fixture
def worker(bench: WorkerContext, stream: LocalStream) -> Worker:
    """A worker that has been offered nothing yet."""
    return Worker(bench, Producer(stream, "epoch", "test", "0"))


def run_out(worker: Worker) -> None:
    """Starts the slots and waits until the works have run out."""
    worker.start()
    assert worker.wait(SECONDS)
    assert worker.failure is None


def outcomes(stream: LocalStream) -> list[tuple[int, str]]:
    """(place, outcome) of every attempt, in order."""
    frames = [decode(item.record) for item in stream.read("facts", partition_of("facts", PROBLEM), 0, 1000)]
    result = [event for frame in frames for event in from_batch(frame.declared, frame.batch)]
    locations = {item.work_id: item.position for item in REQUESTS}
    return [(locations[e.work_id], e.outcome) for e in result if isinstance(e, ExecutionFinished)]


def test_what_is_done_is_not_done_again(worker: Worker, stream: LocalStream) -> None:
    """The same works offered twice, as by a ledger that has not heard of the outcomes: only the new ones run."""
    assert worker.offer(REQUESTS[:3]) == 3
    run_out(worker)
    assert worker.offer(REQUESTS) == 3
    run_out(worker)
    assert worker.offer(REQUESTS) == 0
    assert outcomes(stream) == [(location, "accepted") for location in range(6)]
    assert worker.progress.finished == 6


def test_works_that_are_not_offered_any_more_are_not_begun(
    worker: Worker, sandbox: Scripted, stream: LocalStream
) -> None:
    """The one under way ends; of the others only those run that are offered now, in the order given now."""
    sandbox.gate.clear()
    worker.offer(REQUESTS)
    worker.start()
    assert sandbox.begun.get(timeout=SECONDS) == 0
    assert worker.offer([REQUESTS[5], REQUESTS[0], REQUESTS[3]]) == 2  # the running one is not queued again
    sandbox.gate.set()
    run_out(worker)
    assert [location for location, _ in outcomes(stream)] == [0, 5, 3]


def test_a_work_that_always_fails_in_the_sandbox_is_given_up(
    worker: Worker, sandbox: Scripted, stream: LocalStream
) -> None:
    """Three tries, behind the other works; offered again it is not taken."""
    sandbox.outcomes[b"1"] = "fault"
    worker.offer(REQUESTS[:3])
    run_out(worker)
    assert outcomes(stream) == [
        (0, "accepted"),
        (1, "sandbox_fault"),
        (2, "accepted"),
        *[(1, "sandbox_fault")] * (MAX_FAULTS_PER_WORK - 1),
    ]
    assert worker.offer(REQUESTS[:3]) == 0


def test_a_stopped_worker_ends_what_runs_and_takes_no_more(
    worker: Worker, sandbox: Scripted, stream: LocalStream
) -> None:
    """The outcome of the program under way is on the stream; the others are left for somebody else."""
    sandbox.gate.clear()
    worker.offer(REQUESTS)
    worker.start()
    sandbox.begun.get(timeout=SECONDS)
    worker.stop()
    assert not worker.wait(0.0)
    sandbox.gate.set()
    assert worker.wait(SECONDS)
    assert outcomes(stream) == [(0, "accepted")]
