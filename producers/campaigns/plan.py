"""The plan of a campaign: which program runs on which test, in which shuffled order. Pure: no clock, no I/O.

The order is that of SHA-256(seed, problem, program, test): reproducible permanently, on every platform, and independent
of how the programs are listed.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from lapledger.ledger.codec.canonical import sha256_fields, work_id
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import LANES, CampaignOpened, ExecutionRequested, ExecutionShared, ProgramAdded, TestAdded

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
REFERENCE_RULE = "every human program labelled accepted"


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """The limits that a problem states for its runs; None where the campaign's is in force."""

    time_ns: int | None
    memory_bytes: int | None
    output_bytes: int | None


_NO_LIMITS = OwnLimits(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """What a user may set about a campaign; times in nanoseconds, sizes in bytes.

    `problem_limits` are the limits that problems state and that are in force; for others the campaign's count.
    """

    service: str
    seed: int
    hard_limit_ns: int
    memory_bytes: int
    output_bytes: int
    process_limit: int
    repetitions: int
    warmups: int
    problem_limits: Mapping[str, OwnLimits] = field(default_factory=dict)

    @property
    def stated(self) -> str:
        """Canonical JSON of all settings; own limits appear only where there are any."""
        settings = asdict(self)
        if not self.problem_limits:
            del settings["problem_limits"]
        return json.dumps(settings, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign, its works in shuffled order, and the members that are not run as another one's executions count."""

    opening: CampaignOpened
    requests: tuple[ExecutionRequested, ...]
    shared: tuple[ExecutionShared, ...] = ()


def is_reference(program: ProgramAdded) -> bool:
    """Whether a program belongs to the reference pool by the default rule."""
    return program.model == "human" and program.label == "accepted"


def check_name(campaign: str) -> None:
    """UserError when a campaign cannot be called so."""
    if not _NAME.fullmatch(campaign):
        raise UserError(f"campaign {campaign!r}: use 1 to 64 letters, digits, dots, dashes or underscores")


def make_plan(
    programs: Sequence[ProgramAdded],
    tests: Sequence[TestAdded],
    settings: PlanSettings,
    *,
    name: str | None = None,
    once: bool = False,
) -> Plan:
    """The plan that runs every program on every test of its problem; UserError when nothing is to be run.

    Without a name the campaign is called after the digest of its plan, so that the same plan is the same campaign.
    With `once` the first rollout of each source on a problem is run, and the others share its executions.
    """
    if name is not None:
        check_name(name)
    shared_by = _shared_executions(programs) if once else {}
    works = _shuffled(_pairs((p for p in programs if p.program_id not in shared_by), tests), settings.seed)
    if not works:
        raise UserError(
            "nothing to run: the chosen problems have no programs or no tests; import some with `lap import icpc`"
        )
    ids = (*(key for pair in works for key in pair[1:]), *(key for pair in sorted(shared_by.items()) for key in pair))
    digest = sha256_fields("plan", settings.stated, *ids)
    campaign = name or f"c-{digest[:12]}"
    requests = tuple(
        _request(campaign, position, *work, limits=settings.problem_limits.get(work[0], _NO_LIMITS))
        for position, work in enumerate(works)
    )
    run = {request.program_id for request in requests}
    members = [p for p in programs if shared_by.get(p.program_id, p.program_id) in run]
    shared = tuple(_shared(campaign, p, shared_by[p.program_id]) for p in members if p.program_id in shared_by)
    return Plan(_opening_event(campaign, digest, settings, members, requests), requests, shared)


def _request(
    campaign: str, position: int, problem: str, program: str, test: str, *, limits: OwnLimits
) -> ExecutionRequested:
    return ExecutionRequested(
        work_id=work_id(campaign, program, test, 0),
        campaign_id=campaign,
        problem_id=problem,
        program_id=program,
        test_id=test,
        block=0,
        position=position,
        lane=str(position % LANES),
        limit_ns=limits.time_ns,
        memory_bytes=limits.memory_bytes,
        output_limit_bytes=limits.output_bytes,
    )


def _shared(campaign: str, program: ProgramAdded, executed: str) -> ExecutionShared:
    return ExecutionShared(
        campaign_id=campaign,
        problem_id=program.problem_id,
        program_id=program.program_id,
        executed_program_id=executed,
        source_blob=program.source_blob,
    )


def _shared_executions(programs: Iterable[ProgramAdded]) -> dict[str, str]:
    """The rollouts whose source an earlier one has on the same problem -> that one, which is run."""
    first: dict[tuple[str, str], str] = {}
    shared_by = {}
    for program in programs:
        if program.rollout_id is not None:
            executed = first.setdefault((program.problem_id, program.source_blob), program.program_id)
            if executed != program.program_id:
                shared_by[program.program_id] = executed
    return shared_by


def _opening_event(
    campaign: str,
    digest: str,
    settings: PlanSettings,
    members: Sequence[ProgramAdded],
    requests: Sequence[ExecutionRequested],
) -> CampaignOpened:
    return CampaignOpened(
        campaign_id=campaign,
        plan_digest=digest,
        service=settings.service,
        problems=tuple(sorted({request.problem_id for request in requests})),
        programs=tuple(sorted({p.program_id for p in members})),
        references=tuple(sorted({p.program_id for p in members if is_reference(p)})),
        reference_rule=REFERENCE_RULE,
        shuffle_seed=settings.seed,
        hard_limit_ns=settings.hard_limit_ns,
        memory_bytes=settings.memory_bytes,
        output_bytes=settings.output_bytes,
        process_limit=settings.process_limit,
        repetitions=settings.repetitions,
        warmups=settings.warmups,
        works=len(requests),
    )


def _pairs(programs: Iterable[ProgramAdded], tests: Iterable[TestAdded]) -> Iterable[tuple[str, str, str]]:
    by_problem: dict[str, list[str]] = {}
    for test in tests:
        by_problem.setdefault(test.problem_id, []).append(test.test_id)
    for program in programs:
        for test_id in by_problem.get(program.problem_id, ()):
            yield program.problem_id, program.program_id, test_id


def _shuffled(pairs: Iterable[tuple[str, str, str]], seed: int) -> list[tuple[str, str, str]]:
    return sorted(set(pairs), key=lambda pair: sha256_fields("place", seed, *pair))


def estimate_ns(
    requests: Iterable[ExecutionRequested], known_ns: Mapping[tuple[str, str], int], per_run_ns: int
) -> tuple[int, int]:
    """(estimated nanoseconds of all works on one slot, how many of them had no stored duration).

    `known_ns` maps (program, test) to a stored duration; the others count as the mean of the known ones, as durations
    have a long tail, or as `per_run_ns` where nothing is known.
    """
    typical = sum(known_ns.values()) // len(known_ns) if known_ns else per_run_ns
    durations = [known_ns.get((request.program_id, request.test_id)) for request in requests]
    return sum(typical if ns is None else ns for ns in durations), durations.count(None)
