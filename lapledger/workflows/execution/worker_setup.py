"""What a worker works with on this machine: its sandbox, its measurement class, and its context for a campaign.

Timings of two machines, interpreters or isolations are two measurement classes and are never ranked together.
"""

import os
import platform
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.events import CampaignOpened, ProgramAdded, TestAdded, WorkerStarted
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.producers.campaigns.attempts import WorkerFacts
from lapledger.producers.campaigns.worker import Material, WorkerContext
from lapledger.producers.sandbox.limits import Limits, Sandbox
from lapledger.producers.sandbox.output_checker import AnswerFlags
from lapledger.producers.sandbox.selection import measure_startup, open_sandbox
from lapledger.settings import Settings
from lapledger.workflows.reporter import Reporter
from lapledger.workflows.session import new_id, utc_now

STARTUP_RUNS = 21

_FIRST = (
    "SELECT host, interpreter, isolation FROM worker_started WHERE campaign_id = $id ORDER BY _admission, _row LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class WorkerClass:
    """What timings must share to be compared."""

    host: str
    interpreter: str
    isolation: str

    def differs(self, from_class: "WorkerClass") -> str:
        """The names of the fields in which two classes differ; "" when they are the same."""
        theirs = asdict(from_class)
        return " and ".join(name for name, value in asdict(self).items() if value != theirs[name])


def find_sandbox(root: Path, settings: Settings, reporter: Reporter) -> Sandbox:
    """The sandbox of this machine, which hides the ledger's folder; a weak one is reported."""
    sandbox = open_sandbox(isolation=settings.isolation, hidden=(root.resolve(),))
    if sandbox.warning:
        reporter.warning(sandbox.warning)
    return sandbox


def class_here(sandbox: Sandbox) -> WorkerClass:
    """The class of this machine's timings."""
    return WorkerClass(host_fingerprint()[0], sandbox.interpreter.sha256, sandbox.isolation)


def class_of(questions: Questions, campaign: str) -> WorkerClass | None:
    """The class of a campaign, which the first worker that was admitted for it decides; None when none was."""
    rows = questions.rows(_FIRST, id=campaign)
    return WorkerClass(**rows[0]) if rows else None


def start_worker(
    opening: CampaignOpened, sandbox: Sandbox, *, worker_id: str, slots: int
) -> tuple[WorkerFacts, WorkerStarted]:
    """(what goes into every timing, the fact that the worker came up for a campaign); measures the start-up."""
    host, description = host_fingerprint()
    facts = WorkerFacts(
        worker_id=worker_id,
        host=host,
        interpreter=sandbox.interpreter.sha256,
        isolation=sandbox.isolation,
        startup_ns=measure_startup(sandbox, STARTUP_RUNS),
    )
    started = WorkerStarted(
        worker_id=worker_id,
        campaign_id=opening.campaign_id,
        host=host,
        host_description=description,
        interpreter=facts.interpreter,
        interpreter_version=sandbox.interpreter.version,
        isolation=facts.isolation,
        slots=slots,
        startup_ns=facts.startup_ns,
        started_at=utc_now(),
    )
    return facts, started


@dataclass(frozen=True, slots=True)
class Site:
    """Where programs run on this machine, side by side in so many slots, with a folder for their outputs."""

    sandbox: Sandbox
    slots: int
    scratch: Path


def worker_context(
    opening: CampaignOpened, facts: WorkerFacts, site: Site, *, blobs: Blobs, material: Material
) -> WorkerContext:
    """What a worker needs for a campaign, with the limits that the campaign was opened with."""
    return WorkerContext(
        sandbox=site.sandbox,
        limits=Limits(
            wall_ns=opening.hard_limit_ns,
            memory_bytes=opening.memory_bytes,
            output_bytes=opening.output_bytes,
            processes=opening.process_limit,
        ),
        repetitions=opening.repetitions,
        warmups=opening.warmups,
        slots=site.slots,
        blobs=blobs,
        material=material,
        facts=facts,
        scratch=site.scratch,
        monotonic_ns=time.monotonic_ns,
        new_id=new_id,
        utc_now=utc_now,
    )


def material_of(programs: Iterable[ProgramAdded], tests: Iterable[TestAdded], flags: dict[str, str]) -> Material:
    """Where the bytes of programs and tests lie."""
    listed = list(tests)
    parsed = {text: AnswerFlags.parse(text) for text in {*flags.values(), *(t.validator_flags for t in listed)}}
    return Material(
        sources={p.program_id: p.source_blob for p in programs},
        inputs={t.test_id: t.input_blob for t in listed if t.input_blob is not None},
        answers={t.test_id: t.answer_blob for t in listed if t.answer_blob is not None},
        flags={t.test_id: parsed[t.validator_flags or flags[t.problem_id]] for t in listed},
        arguments={t.test_id: tuple(t.arguments) for t in listed if t.arguments},
    )


def check_blobs(material: Material, blobs: Blobs) -> None:
    """Fault when a source or an input is missing, before anything runs."""
    for digest in {*material.sources.values(), *material.inputs.values()}:
        if not blobs.has(digest):
            blobs.get(digest)  # raises the fault that says which blob is missing and what to do


def host_fingerprint() -> tuple[str, str]:
    """(hash, description) of what decides speed here: processor, cores, kernel and memory; no host name."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 30)
    description = f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {memory} GiB"
    return sha256_fields("host", description)[:16], description
