"""A sandbox worker: slots that take works in shuffled order, run them, and make each outcome durable before the next.

An attempt is on the stream before its slot takes other work, so a kill loses at most one running attempt a slot. What a
worker has done it never does again, however late the ledger learns of it.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lapledger.ledger.errors import Fault
from lapledger.ledger.events import ExecutionRequested
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.streams.producer import Producer
from lapledger.producers.campaigns.attempts import (
    Circumstances,
    Judged,
    WorkerFacts,
    attempt_events,
    charged,
    judge_run,
    run_block,
)
from lapledger.producers.sandbox.limits import LEAST_MEMORY_BYTES, Limits, Sandbox
from lapledger.producers.sandbox.output_checker import AnswerFlags

MAX_FAULTS_PER_WORK = 3
MAX_FAULTS_IN_A_ROW = 10


@dataclass(frozen=True, slots=True)
class Material:
    """Where the bytes of works lie: blob digests by program and test; answer flags and arguments by test."""

    sources: dict[str, str]
    inputs: dict[str, str]
    answers: dict[str, str]
    flags: dict[str, AnswerFlags]
    arguments: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
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
    """Runs works in `context.slots` threads until none is left, `stop` is called, or the sandbox keeps failing."""

    def __init__(
        self,
        context: WorkerContext,
        producer: Producer,
        requests: Sequence[ExecutionRequested] = (),
        *,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`ready` is called before each work and returns when there is room for its outcome."""
        self._worker_context = context
        self._ready = ready
        self._producer = producer
        self._queue = deque(requests)
        self._tries: dict[str, int] = {}
        self._settled: set[str] = set()
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._start_ns = context.monotonic_ns()
        self._busy = 0
        self._faults_in_a_row = 0
        self._threads: dict[int, threading.Thread] = {}
        self.progress = Progress()
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Starts the slots that do not run and returns."""
        for slot in range(self._worker_context.slots):
            if slot not in self._threads or not self._threads[slot].is_alive():
                self._threads[slot] = threading.Thread(target=self._slot, args=(slot,), daemon=True)
                self._threads[slot].start()

    def offer(self, requests: Sequence[ExecutionRequested]) -> int:
        """Puts these works in the place of those that wait, without what is done, given up or under way here.

        How many wait then.
        """
        with self._lock:
            known = self._settled | self._running
            self._queue = deque(request for request in requests if request.work_id not in known)
            return len(self._queue)

    def stop(self) -> None:
        """Lets running attempts finish and takes no further work."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds`; True when all slots have ended."""
        threads = list(self._threads.values())
        for thread in threads:
            thread.join(seconds / len(threads))
        return not any(thread.is_alive() for thread in threads)

    def _slot(self, slot: int) -> None:
        try:
            while not self._stop.is_set():
                self._ready()
                request = self._take()
                if request is None:
                    break
                self._attempt(request, slot)
        except BaseException as error:  # noqa: BLE001  (handed to the main thread, which raises it)
            self.failure = self.failure or error
            self._stop.set()

    def _take(self) -> ExecutionRequested | None:
        with self._lock:
            if not self._queue:
                return None
            self._busy += 1
            request = self._queue.popleft()
            self._running.add(request.work_id)
            return request

    def _attempt(self, request: ExecutionRequested, slot: int) -> None:
        context = self._worker_context
        offset_ns, neighbours = context.monotonic_ns() - self._start_ns, self._busy - 1
        runs = run_block(lambda: self._run(request, slot), context.warmups + context.repetitions)
        if self._tries.get(request.work_id, 0) == MAX_FAULTS_PER_WORK - 1:
            runs[-1] = charged(runs[-1])
        around = Circumstances(
            attempt_id=context.new_id(),
            offset_ns=offset_ns,
            slot=slot,
            neighbours=neighbours,
            finished_at=context.utc_now(),
        )
        events = attempt_events(
            request, runs, context.facts, around=around, limits=self._limits(request), warmups=context.warmups
        )
        with self._lock:
            self._busy -= 1
            self._producer.append(events)
            self._running.discard(request.work_id)
            self._count(request, runs[-1])

    def _run(self, request: ExecutionRequested, slot: int) -> Judged:
        context, material = self._worker_context, self._worker_context.material
        output = context.scratch / f"output-{slot}"
        execution = context.sandbox.run(
            context.blobs.local(material.sources[request.program_id], context.scratch),
            context.blobs.local(material.inputs[request.test_id], context.scratch),
            output=output,
            limits=self._limits(request),
            slot=slot,
            arguments=material.arguments.get(request.test_id, ()),
        )
        answer = context.blobs.get(material.answers[request.test_id])
        return judge_run(execution, output, answer, material.flags[request.test_id])

    def _limits(self, request: ExecutionRequested) -> Limits:
        """The campaign's limits, and its problem's own where the request names them."""
        limits = self._worker_context.limits
        return replace(
            limits,
            wall_ns=request.limit_ns or limits.wall_ns,
            memory_bytes=max(request.memory_bytes or limits.memory_bytes, LEAST_MEMORY_BYTES),
            output_bytes=request.output_limit_bytes or limits.output_bytes,
        )

    def _count(self, request: ExecutionRequested, last: Judged) -> None:
        outcomes = self.progress.outcomes
        outcomes[last.outcome] = outcomes.get(last.outcome, 0) + 1
        if last.outcome != "sandbox_fault":
            self._settled.add(request.work_id)
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
        else:
            self._settled.add(request.work_id)
