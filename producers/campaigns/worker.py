"""A sandbox worker: slots that take works in shuffled order, run them, and make each outcome durable before the next.

An attempt is on the stream before its slot takes other work, so a kill loses at most one running attempt a slot.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ledger.errors import Fault
from ledger.events import ExecutionRequested
from ledger.store.blobs import Blobs
from ledger.streams.producer import Producer
from producers.campaigns.attempts import (
    Circumstances,
    Judged,
    WorkerFacts,
    attempt_events,
    charged,
    judge_run,
    run_block,
)
from producers.sandbox.answers import AnswerFlags
from producers.sandbox.limits import Limits, Sandbox

MAX_FAULTS_PER_WORK = 3
MAX_FAULTS_IN_A_ROW = 10


@dataclass(frozen=True, slots=True)
class Material:
    """Where the bytes of works lie: blob digests by program and test, answer flags by problem."""

    sources: dict[str, str]
    inputs: dict[str, str]
    answers: dict[str, str]
    flags: dict[str, AnswerFlags]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything a worker works with. The clocks and the source of attempt ids come from outside."""

    sandbox: Sandbox
    limits: Limits
    repetitions: int
    warmups: int
    slots: int
    blobs: Blobs
    material: Material
    facts: WorkerFacts
    scratch: Path
    monotonic_ns: Callable[[], int]
    new_id: Callable[[], str]
    utc_now: Callable[[], str]


@dataclass(slots=True)
class Progress:
    """What a worker has done so far; read by the progress bar, written under the worker's lock."""

    finished: int = 0
    faults: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)


class Worker:
    """Runs works in `bench.slots` threads until none is left, `stop` is called, or the sandbox keeps failing."""

    def __init__(self, bench: Bench, producer: Producer, requests: Sequence[ExecutionRequested]) -> None:
        self._bench = bench
        self._producer = producer
        self._queue = deque(requests)
        self._tries: dict[str, int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._start_ns = bench.monotonic_ns()
        self._busy = 0
        self._faults_in_a_row = 0
        self._threads = [threading.Thread(target=self._slot, args=(slot,), daemon=True) for slot in range(bench.slots)]
        self.progress = Progress()
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Starts the slots and returns."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Lets running attempts finish and takes no further work."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds`; True when all slots have ended."""
        for thread in self._threads:
            thread.join(seconds / len(self._threads))
        return not any(thread.is_alive() for thread in self._threads)

    def _slot(self, slot: int) -> None:
        try:
            while not self._stop.is_set() and (request := self._take()) is not None:
                self._attempt(request, slot)
        except BaseException as error:  # noqa: BLE001  (handed to the main thread, which raises it)
            self.failure = self.failure or error
            self._stop.set()

    def _take(self) -> ExecutionRequested | None:
        with self._lock:
            if not self._queue:
                return None
            self._busy += 1
            return self._queue.popleft()

    def _attempt(self, request: ExecutionRequested, slot: int) -> None:
        bench = self._bench
        offset_ns, neighbours = bench.monotonic_ns() - self._start_ns, self._busy - 1
        runs = run_block(lambda: self._run(request, slot), bench.warmups + bench.repetitions)
        if self._tries.get(request.work_id, 0) == MAX_FAULTS_PER_WORK - 1:
            runs[-1] = charged(runs[-1])
        around = Circumstances(
            attempt_id=bench.new_id(),
            offset_ns=offset_ns,
            slot=slot,
            neighbours=neighbours,
            finished_at=bench.utc_now(),
        )
        events = attempt_events(request, runs, bench.facts, around=around, limits=bench.limits, warmups=bench.warmups)
        with self._lock:
            self._busy -= 1
            self._producer.append(events)
            self._count(request, runs[-1])

    def _run(self, request: ExecutionRequested, slot: int) -> Judged:
        bench, material = self._bench, self._bench.material
        output = bench.scratch / f"output-{slot}"
        execution = bench.sandbox.run(
            bench.blobs.path(material.sources[request.program_id]),
            bench.blobs.path(material.inputs[request.test_id]),
            output=output,
            limits=bench.limits,
            slot=slot,
        )
        answer = bench.blobs.get(material.answers[request.test_id])
        return judge_run(execution, output, answer, material.flags[request.problem_id])

    def _count(self, request: ExecutionRequested, last: Judged) -> None:
        outcomes = self.progress.outcomes
        outcomes[last.outcome] = outcomes.get(last.outcome, 0) + 1
        if last.outcome != "sandbox_fault":
            self.progress.finished += 1
            self._faults_in_a_row = 0
            return
        self.progress.faults += 1
        self._faults_in_a_row += 1
        if self._faults_in_a_row >= MAX_FAULTS_IN_A_ROW:
            raise Fault(f"the sandbox failed {self._faults_in_a_row} times in a row: {last.detail}; see `lap doctor`")
        self._tries[request.work_id] = self._tries.get(request.work_id, 0) + 1
        if self._tries[request.work_id] < MAX_FAULTS_PER_WORK:
            self._queue.append(request)
