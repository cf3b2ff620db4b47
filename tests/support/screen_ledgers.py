"""Real ledgers with synthetic facts, made through the real path: producer, local stream, sink."""

from contextlib import closing
from dataclasses import dataclass, field, replace

from lapledger.consumers.ingest.sink import drain
from lapledger.ledger.codec.canonical import blob_digest, sha256_fields, work_id
from lapledger.ledger.events import (
    CampaignOpened,
    ExecutionFinished,
    ProblemAdded,
    ProgramAdded,
    TestAdded,
    TimingMeasured,
)
from lapledger.ledger.store.open_ledger import create_ledger, open_ledger
from lapledger.ledger.streams.producer import Producer

MS = 1_000_000
STEPS = "stonesteps.0123456789ab"


@dataclass(frozen=True)
class Program:
    """A program with its durations in ms, one a test; `outcomes` names what differs from accepted, None: never run."""

    name: str
    ms: tuple[float, ...]
    model: str = "human"
    label: str = "accepted"
    reference: bool = False
    outcomes: dict = field(default_factory=dict)


def program_id(problem, name):
    return f"{problem}/{name}.{blob_digest(name.encode())[:12]}"


def problem_facts(problem, programs, tests):
    """The problem, its tests (the first is an original correctness test, all are optimization tests) and programs."""
    slug = problem.split(".")[0]
    yield ProblemAdded(
        problem_id=problem,
        slug=slug,
        name=slug,
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
    for position in range(tests):
        yield TestAdded(
            problem_id=problem,
            test_id=f"{problem}/t{position}",
            ordinal=position,
            group="secret",
            original=position == 0,
            correctness=position == 0,
            optimization=True,
            input_blob=blob_digest(b"in"),
            answer_blob=blob_digest(b"out"),
            input_bytes=2,
            input_chars=2,
            output_bytes=3,
            output_chars=3,
        )
    for program in programs:
        yield ProgramAdded(
            problem_id=problem,
            program_id=program_id(problem, program.name),
            name=f"{program.name}.py",
            model=program.model,
            label=program.label,
            language="python3",
            source_blob=blob_digest(program.name.encode()),
            source_bytes=1,
            rollout_id=None,
        )


def campaign_facts(campaign, problem, programs):
    """The opening of a campaign over one problem."""
    yield CampaignOpened(
        campaign_id=campaign,
        plan_digest=sha256_fields(campaign),
        service="local",
        problems=(problem,),
        programs=tuple(program_id(problem, p.name) for p in programs),
        references=tuple(program_id(problem, p.name) for p in programs if p.reference),
        reference_rule="accepted",
        shuffle_seed=0,
        hard_limit_ns=10_000 * MS,
        memory_bytes=2**30,
        output_bytes=2**20,
        process_limit=1,
        repetitions=1,
        warmups=0,
        works=sum(len(p.ms) for p in programs),
    )


def opening_over(campaign, programs_of):
    """The opening of a campaign over several problems, from a problem's id to its programs."""
    parts = [fact for problem, programs in programs_of.items() for fact in campaign_facts(campaign, problem, programs)]
    keys = ("problems", "programs", "references")
    joined = {key: tuple(item for part in parts for item in getattr(part, key)) for key in keys}
    return replace(parts[0], works=sum(part.works for part in parts), **joined)


def run_facts(campaign, problem, program):
    """One timing and one accepted attempt for each test that was run."""
    for position, ms in enumerate(program.ms):
        outcome = program.outcomes.get(position, "accepted")
        if outcome is None:
            continue
        work = work_id(campaign, program_id(problem, program.name), f"{problem}/t{position}", 0)
        common = {
            "work_id": work,
            "attempt_id": f"a-{work[:16]}",
            "campaign_id": campaign,
            "problem_id": problem,
            "program_id": program_id(problem, program.name),
            "test_id": f"{problem}/t{position}",
            "block": 0,
        }
        yield TimingMeasured(
            **common,
            repetition=0,
            warmup=False,
            wall_ns=round(ms * MS),
            user_ns=round(ms * MS / 2),
            system_ns=0,
            peak_memory_bytes=1,
            voluntary_switches=0,
            forced_switches=0,
            judged_limit_ns=10_000 * MS,
            hard_limit_ns=10_000 * MS,
            cut="",
            position=position,
            offset_ns=0,
            core=None,
            slot=0,
            neighbours=0,
            startup_ns=0,
            interpreter="",
            isolation="plain",
            host="",
        )
        yield ExecutionFinished(
            **common,
            outcome=outcome,
            detail="",
            exit_code=0,
            signal=None,
            output_digest=None,
            output_bytes=0,
            timings=1,
            timings_digest=sha256_fields(work, str(ms)),
            worker_id="w",
            isolation="plain",
            finished_at="",
        )


def append(root, facts):
    """Facts on the stream of the ledger in `root`, which is made when there is none, and admitted."""
    create_ledger(root, "identity", "").close()
    ledger = open_ledger(root)
    try:
        with closing(ledger.stream()) as stream:
            producer = Producer(stream, f"e{sum(stream.ends().values())}", "test", "0")
            producer.append(facts)
            producer.close()
            drain(ledger, stream)
        return str(ledger.cut())
    finally:
        ledger.close()


def make_campaign(root, programs, *, campaign="nightly", problem=STEPS):
    """The cut after a whole campaign over one problem was appended."""
    facts = [
        *problem_facts(problem, programs, max(len(p.ms) for p in programs)),
        *campaign_facts(campaign, problem, programs),
        *(fact for program in programs for fact in run_facts(campaign, problem, program)),
    ]
    return append(root, facts)


REFERENCES = tuple(Program(f"ref{ms}", (ms, ms), reference=True) for ms in (10, 20, 30, 40))
MODELS = (
    Program("middle", (25, 25), model="model"),
    Program("wrong", (5, 5), model="model", outcomes={0: "wrong_answer"}),
    Program("halfway", (5, 5), model="model", outcomes={1: None}),
)
"""`middle` lies behind two of the four references on both tests: k = 4 of 8 on each, mean percentile 50. Of the
references' own scores 0, 1/3, 2/3, 1 two are smaller than 1/2: q = 4/8."""
