"""Small campaigns as facts, with true digests, for tests of the derivers: every value is chosen by the test."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lapledger.ledger.codec.canonical import blob_digest, rows_digest, sha256, work_id
from lapledger.ledger.events import (
    LANES,
    CampaignOpened,
    Event,
    ExecutionFinished,
    ExecutionRequested,
    ExecutionShared,
    ProblemAdded,
    ProgramAdded,
    TestAdded,
    TimingMeasured,
    to_batch,
)

MS = 1_000_000


@dataclass(frozen=True)
class Cell:
    """How one program ended on one test: outcome, and wall time in ms of each repetition."""

    outcome: str = "accepted"
    ms: tuple[float, ...] = (10.0,)


@dataclass(frozen=True)
class Campaign:
    """A campaign: problem -> program -> one cell a test. Programs whose name starts with `r` are references."""

    name: str
    cells: Mapping[str, Mapping[str, tuple[Cell, ...]]]
    service: str = "local"
    limit_ms: int = 2000
    surplus: Mapping[tuple[str, str, int], Cell] = field(default_factory=dict)
    twins: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(problem, program) that is not run -> the program whose source it has and whose executions it shares."""

    def members(self) -> Iterator[tuple[str, str]]:
        """Every (problem, program)."""
        for problem, programs in self.cells.items():
            for program in programs:
                yield problem, program
        yield from self.twins

    def source(self, problem: str, program: str) -> str:
        """The digest of a program's source: its name, or that of the program it is a twin of."""
        return blob_digest(self.twins.get((problem, program), program).encode())


def program_id(problem: str, program: str) -> str:
    """The id of a program; its source is its name."""
    return f"{problem}/{program}.{blob_digest(program.encode())[:12]}"


def corpus_facts(campaign: Campaign) -> Iterator[Event]:
    """Problems, tests and programs. Test 0 is a correctness test, the others are optimization tests."""
    for problem, programs in campaign.cells.items():
        yield ProblemAdded(
            problem_id=problem,
            slug=problem,
            name=problem,
            source="",
            license="",
            package_digest=blob_digest(problem.encode()),
            validator_flags="",
            grading="",
            time_limit_ns=None,
            tier=None,
            statement_blob=None,
            importer="test",
        )
        for ordinal in range(len(next(iter(programs.values())))):
            yield TestAdded(
                problem_id=problem,
                test_id=f"{problem}/t{ordinal}",
                ordinal=ordinal,
                group="secret",
                original=ordinal == 0,
                correctness=ordinal == 0,
                optimization=ordinal > 0,
                input_blob=blob_digest(b"in"),
                answer_blob=blob_digest(b"out"),
                input_bytes=1,
                input_chars=1,
                output_bytes=1,
                output_chars=1,
            )
        for program in (*programs, *(name for owner, name in campaign.twins if owner == problem)):
            yield ProgramAdded(
                problem_id=problem,
                program_id=program_id(problem, program),
                name=f"{program}.py",
                model="human",
                label="accepted",
                language="python3",
                source_blob=campaign.source(problem, program),
                source_bytes=1,
                rollout_id=None,
            )


def opening(campaign: Campaign) -> CampaignOpened:
    """The fact that opens the campaign."""
    members = list(campaign.members())
    return CampaignOpened(
        campaign_id=campaign.name,
        plan_digest=blob_digest(campaign.name.encode()),
        service=campaign.service,
        problems=tuple(sorted(campaign.cells)),
        programs=tuple(sorted(program_id(*member) for member in members)),
        references=tuple(sorted(program_id(p, name) for p, name in members if name.startswith("r"))),
        reference_rule="names that start with r",
        shuffle_seed=0,
        hard_limit_ns=campaign.limit_ms * MS,
        memory_bytes=1 << 30,
        output_bytes=1 << 20,
        process_limit=16,
        repetitions=1,
        warmups=0,
        works=sum(len(cells) for programs in campaign.cells.values() for cells in programs.values()),
    )


def requests(campaign: Campaign) -> Iterator[ExecutionRequested]:
    """Every work, in the order of the cells."""
    run = [member for member in campaign.members() if member not in campaign.twins]
    works = [(p, name, t) for p, name in run for t in range(len(campaign.cells[p][name]))]
    for location, (problem, name, ordinal) in enumerate(works):
        program, test = program_id(problem, name), f"{problem}/t{ordinal}"
        yield ExecutionRequested(
            work_id=work_id(campaign.name, program, test, 0),
            campaign_id=campaign.name,
            problem_id=problem,
            program_id=program,
            test_id=test,
            block=0,
            position=location,
            lane=str(location % LANES),
        )


def shares(campaign: Campaign) -> Iterator[ExecutionShared]:
    """Whose executions each twin shares."""
    for (problem, name), executed in campaign.twins.items():
        yield ExecutionShared(
            campaign_id=campaign.name,
            problem_id=problem,
            program_id=program_id(problem, name),
            executed_program_id=program_id(problem, executed),
            source_blob=campaign.source(problem, name),
        )


def attempts(campaign: Campaign) -> Iterator[list[Event]]:
    """The events of each attempt, surplus ones after all accepted ones."""
    for request in requests(campaign):
        _, name, ordinal = _location(campaign, request)
        yield attempt(campaign, request, campaign.cells[request.problem_id][name][ordinal], "1")
    for request in requests(campaign):
        cell = campaign.surplus.get(_location(campaign, request))
        if cell is not None:
            yield attempt(campaign, request, cell, "2")


def _location(campaign: Campaign, request: ExecutionRequested) -> tuple[str, str, int]:
    name = next(
        name
        for name in campaign.cells[request.problem_id]
        if program_id(request.problem_id, name) == request.program_id
    )
    return request.problem_id, name, int(request.test_id.rsplit("t", 1)[1])


def attempt(campaign: Campaign, request: ExecutionRequested, cell: Cell, number: str) -> list[Event]:
    """One attempt: its timings, then the finish that makes them visible."""
    common = {
        "work_id": request.work_id,
        "attempt_id": f"{request.work_id[:24]}-{number}",
        "campaign_id": request.campaign_id,
        "problem_id": request.problem_id,
        "program_id": request.program_id,
        "test_id": request.test_id,
        "block": 0,
    }
    walls = () if cell.outcome == "sandbox_fault" else cell.ms
    timings = [
        TimingMeasured(
            **common,
            repetition=repetition,
            warmup=False,
            wall_ns=round(ms * MS),
            user_ns=round(ms * MS * 0.9),
            system_ns=0,
            peak_memory_bytes=1 << 20,
            voluntary_switches=0,
            forced_switches=0,
            judged_limit_ns=campaign.limit_ms * MS,
            hard_limit_ns=campaign.limit_ms * MS,
            cut="wall" if cell.outcome == "time_limit" else "",
            position=request.position,
            offset_ns=request.position,
            core=None,
            slot=0,
            neighbours=0,
            startup_ns=MS,
            interpreter="",
            isolation="plain",
            host="",
        )
        for repetition, ms in enumerate(walls)
    ]
    finished = ExecutionFinished(
        **common,
        outcome=cell.outcome,
        detail="",
        exit_code=0,
        signal=None,
        output_digest=None,
        output_bytes=0,
        timings=len(timings),
        timings_digest=rows_digest(to_batch(timings)) if timings else sha256(),
        worker_id="w",
        isolation="plain",
        finished_at="",
    )
    return [*timings, finished]


def all_facts(campaign: Campaign) -> list[Event]:
    """The whole campaign in its natural order."""
    run = [event for events in attempts(campaign) for event in events]
    return [*corpus_facts(campaign), opening(campaign), *requests(campaign), *run]
