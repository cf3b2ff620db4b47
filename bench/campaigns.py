"""A synthetic campaign in a ledger, made the real way: events, stream, sink, sealed segments. Nothing is measured here.

Problems with references and candidates of several models, every program on every test once, in shuffled order.
Durations are log-normal: a program has its speed, a test its size, and each run its noise. A fifth of the programs fail
a tenth of their tests, a tenth are killed on the slowest. Digests of timings are random: nobody proves this ledger.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from timings import FINISHED, TIMING

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.codec.canonical import sha256_fields, work_id
from lapledger.ledger.codec.octets import to_strings
from lapledger.ledger.events import CampaignOpened, ProblemAdded, ProgramAdded, TestAdded
from lapledger.ledger.store.open_ledger import create_ledger
from lapledger.ledger.streams.producer import Producer

CAMPAIGN = "main"
HARD_LIMIT_NS = 10_000_000_000
OUTCOMES = pa.array(["accepted", "wrong_answer", "time_limit"])
STEP = 4
"""Problems that are made, admitted and sealed at a time."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a campaign is."""

    problems: int = 302
    tests: int = 60
    references: int = 50
    models: int = 18
    samples: int = 20

    @property
    def programs(self) -> int:
        """Programs of one problem."""
        return self.references + self.models * self.samples

    @property
    def candidates(self) -> int:
        """Timings of programs that are no references."""
        return self.problems * self.tests * self.models * self.samples

    @property
    def timings(self) -> int:
        """All timings."""
        return self.problems * self.tests * self.programs


def make(folder: Path, size: Size) -> None:
    """A ledger in the folder with one campaign of that size, sealed."""
    names = [f"problem-{number:05d}.{sha256_fields('package', number)[:12]}" for number in range(size.problems)]
    programs = {name: [_program(name, n, size) for n in range(size.programs)] for name in names}
    with closing(create_ledger(folder, "bench", "now")) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-1", "bench", "0")
        producer.append([_campaign(names, programs, size)])
        for start in range(0, len(names), STEP):
            for number, name in enumerate(names[start : start + STEP], start):
                tests = [_test(name, n) for n in range(size.tests)]
                producer.append([_problem(name), *tests, *programs[name]])
                timed, finished = _runs(programs[name], tests, seed=number)
                producer.append_rows(TIMING, name, timed)
                producer.append_rows(FINISHED, name, finished)
            drain(ledger, stream)
            if start // STEP % 4 == 3:
                seal(ledger)
        seal(ledger)


def _problem(name: str) -> ProblemAdded:
    return ProblemAdded(
        problem_id=name,
        slug=name.split(".")[0],
        name=name,
        source="",
        license="",
        package_digest=sha256_fields(name),
        validator_flags="",
        grading="",
        time_limit_ns=None,
        tier=None,
        statement_blob=None,
        importer="bench",
    )


def _test(problem: str, number: int) -> TestAdded:
    blob = sha256_fields(problem, number)
    return TestAdded(
        problem_id=problem,
        test_id=f"{problem}/secret/{number:02d}-random",
        ordinal=number,
        group="secret",
        original=number < 2,
        correctness=False,
        optimization=True,
        input_blob=blob,
        answer_blob=blob,
        input_bytes=1000,
        input_chars=1000,
        output_bytes=10,
        output_chars=10,
    )


def _program(problem: str, number: int, size: Size) -> ProgramAdded:
    human = number < size.references
    model = "human" if human else f"model-{(number - size.references) // size.samples:02d}"
    source = sha256_fields("source", problem, number)
    return ProgramAdded(
        problem_id=problem,
        program_id=f"{problem}/{model}-{number:03d}.{source[:12]}",
        name=f"{model}-{number:03d}",
        model=model,
        label="accepted" if human else "",
        language="python3",
        source_blob=source,
        source_bytes=1000,
        rollout_id=None,
    )


def _campaign(names: list[str], programs: dict[str, list[ProgramAdded]], size: Size) -> CampaignOpened:
    members = [program.program_id for name in names for program in programs[name]]
    return CampaignOpened(
        campaign_id=CAMPAIGN,
        plan_digest=sha256_fields("plan", size.problems),
        service="bench",
        problems=tuple(names),
        programs=tuple(members),
        references=tuple(member for member in members if "/human-" in member),
        reference_rule="all",
        shuffle_seed=0,
        hard_limit_ns=HARD_LIMIT_NS,
        memory_bytes=1 << 30,
        output_bytes=1 << 20,
        process_limit=1,
        repetitions=1,
        warmups=0,
        works=size.timings,
    )


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of one problem in shuffled order [rows]."""

    program: Ints
    test: Ints
    wall_ns: Ints
    outcome: Ints


def _draw(programs: int, tests: int, random: np.random.Generator) -> _Runs:
    speed, size = random.lognormal(sigma=0.5, size=programs), random.lognormal(sigma=0.5, size=tests)
    order = random.permutation(programs * tests)
    program, test = order // tests, order % tests
    wall = (2e8 * speed[program] * size[test] * random.lognormal(sigma=0.08, size=len(order))).astype(np.int64)
    fates = random.random((programs, 2))
    outcome = np.where((fates[program, 0] < 0.2) & (random.random(len(order)) < 0.1), 1, 0)
    outcome[(fates[program, 1] < 0.1) & (wall > np.quantile(wall, 0.9))] = 2
    return _Runs(program, test, np.where(outcome == 2, HARD_LIMIT_NS + 12_345, wall), outcome)


def _runs(programs: list[ProgramAdded], tests: list[TestAdded], *, seed: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The timings and the finished attempts of one problem [programs * tests]."""
    random = np.random.default_rng(seed)
    runs = _draw(len(programs), len(tests), random)
    return _timed(runs, programs, tests, random)


def _timed(
    runs: _Runs, programs: list[ProgramAdded], tests: list[TestAdded], random: np.random.Generator
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    rows, key = len(runs.wall_ns), programs[0].problem_id
    texts = {"campaign_id": CAMPAIGN, "problem_id": key, "cut": "", "interpreter": "ab" * 32, "isolation": "bubblewrap"}
    texts |= {"host": "cd" * 32, "detail": "", "worker_id": "w", "finished_at": "2026-01-01T00:00:00Z"}
    program_ids, test_ids = [p.program_id for p in programs], [t.test_id for t in tests]
    works = [
        work_id(CAMPAIGN, program_ids[p], test_ids[t], 0)
        for p, t in zip(runs.program.tolist(), runs.test.tolist(), strict=True)
    ]
    fixed = {"block": 0, "repetition": 0, "judged_limit_ns": HARD_LIMIT_NS, "hard_limit_ns": HARD_LIMIT_NS}
    fixed |= {"startup_ns": 9_876_543, "slot": 0, "core": 0, "neighbours": 1, "exit_code": 0, "output_bytes": 10}
    wall = runs.wall_ns
    columns = {name: pa.repeat(pa.scalar(value, pa.int64()), rows) for name, value in (fixed | {"timings": 1}).items()}
    columns |= {name: pa.repeat(value, rows) for name, value in texts.items()}
    columns |= {
        "work_id": pa.array(works),
        "attempt_id": to_strings(random.integers(0, 256, (rows, 16), dtype=np.uint8)),
        "program_id": pa.array(program_ids).take(pa.array(runs.program)),
        "test_id": pa.array(test_ids).take(pa.array(runs.test)),
        "warmup": pa.repeat(pa.scalar(value=False), rows),
        "wall_ns": pa.array(wall),
        "user_ns": pa.array(wall * 9 // 10 // 1000 * 1000),
        "system_ns": pa.array(wall // 20 // 1000 * 1000),
        "peak_memory_bytes": pa.array(random.integers(9_000_000, 60_000_000, rows) // 4096 * 4096),
        "voluntary_switches": pa.array(random.integers(0, 20, rows)),
        "forced_switches": pa.array(random.integers(0, 200, rows)),
        "position": pa.array(np.arange(rows)),
        "offset_ns": pa.array(np.cumsum(wall)),
        "outcome": OUTCOMES.take(pa.array(runs.outcome)),
        "signal": pa.nulls(rows, pa.int64()),
        "output_digest": pa.nulls(rows, pa.string()),
        "timings_digest": to_strings(random.integers(0, 256, (rows, 32), dtype=np.uint8)),
    }
    return (
        pa.RecordBatch.from_arrays([columns[c.name] for c in TIMING.columns], schema=TIMING.schema),
        pa.RecordBatch.from_arrays([columns[c.name] for c in FINISHED.columns], schema=FINISHED.schema),
    )
