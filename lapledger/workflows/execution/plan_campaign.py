"""What a user asks to run, as a plan: which members, whether the campaign is stored already, and what is left of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapledger.ledger.errors import UserError, nearest
from lapledger.ledger.events import CampaignOpened, ExecutionRequested, ProgramAdded, TestAdded
from lapledger.ledger.questions.queries import DONE_WORKS, DURATIONS, Questions
from lapledger.producers.campaigns.plan import OwnLimits, Plan, PlanSettings, estimate_ns, is_reference, make_plan
from lapledger.producers.sandbox.limits import MIB
from lapledger.settings import Settings

TYPICAL_RUN_NS = 300_000_000
OVERHEAD_NS = 30_000_000
DEFAULT_LIMIT_S = 10
DEFAULT_MEMORY_MIB = 1024
DEFAULT_OUTPUT_MIB = 64
"""Limits of one run where neither the problem nor the user states one."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The programs and tests of a campaign, and the answer flags and own limits of their problems."""

    programs: tuple[ProgramAdded, ...]
    tests: tuple[TestAdded, ...]
    flags: dict[str, str]
    limits: dict[str, OwnLimits]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with what it was made of."""

    plan: Plan
    chosen: Chosen


@dataclass(frozen=True, slots=True)
class Left:
    """The works of a plan without an accepted outcome, with an estimate of their time on one slot.

    `stored` says whether the estimate stands on any stored duration.
    """

    campaign: str
    works: int
    requests: tuple[ExecutionRequested, ...]
    estimate_ns: int
    unknown: int
    stored: bool


def choose(questions: Questions, problems: Sequence[str], *, references_only: bool = False, every: int = 1) -> Chosen:
    """The members of a campaign: all problems, or those whose id or slug is named; UserError for an unknown one."""
    stored = questions.rows("SELECT * FROM problem ORDER BY problem_id")
    ids = [_find_problem(name, stored) for name in problems] or [row["problem_id"] for row in stored]
    programs = [ProgramAdded(**row) for row in questions.rows(_PROGRAMS)]
    kept = [p for p in programs if p.problem_id in ids and (not references_only or is_reference(p))]
    tests = [TestAdded(**row) for row in questions.rows(_TESTS)]
    problems_ = [row for row in stored if row["problem_id"] in ids]
    return _chosen(_thin(kept, every), [t for t in tests if t.problem_id in ids], problems_)


_PROGRAMS = "SELECT * FROM program WHERE source_blob IS NOT NULL ORDER BY problem_id, program_id"
_TESTS = """
SELECT * FROM test WHERE input_blob IS NOT NULL AND answer_blob IS NOT NULL ORDER BY problem_id, ordinal
"""
"""What can be run: of what other tools tell, a source or a test may be unknown."""


def members_of(questions: Questions, opening: CampaignOpened) -> Chosen:
    """The members of a campaign that was opened."""
    wanted = {"programs": list(opening.programs)}
    programs = questions.rows("SELECT * FROM program WHERE list_contains($programs, program_id)", **wanted)
    problems = {"problems": list(opening.problems)}
    tests = questions.rows("SELECT * FROM test WHERE list_contains($problems, problem_id)", **problems)
    stored = questions.rows("SELECT * FROM problem WHERE list_contains($problems, problem_id)", **problems)
    return _chosen([ProgramAdded(**row) for row in programs], [TestAdded(**row) for row in tests], stored)


def _chosen(programs: Sequence[ProgramAdded], tests: Sequence[TestAdded], problems: Sequence[dict[str, Any]]) -> Chosen:
    limits = ("time_limit_ns", "memory_limit_bytes", "output_limit_bytes")
    return Chosen(
        tuple(programs),
        tuple(tests),
        {row["problem_id"]: row["validator_flags"] for row in problems},
        {row["problem_id"]: OwnLimits(*(row[name] for name in limits)) for row in problems},
    )


def _find_problem(name: str, stored: Sequence[dict[str, Any]]) -> str:
    matches = [row["problem_id"] for row in stored if name in (row["problem_id"], row["slug"])]
    if len(matches) == 1:
        return str(matches[0])
    if matches:
        raise UserError(f"problem {name!r} is stored in several versions: {', '.join(matches)}; name one of these")
    slugs = sorted({row["slug"] for row in stored})
    known = ", ".join(slugs) or "none; import some with `lap import icpc`"
    raise UserError(f"no problem {name!r} in the ledger{nearest(name, slugs) or ';'} Known: {known}")


def _thin(programs: Sequence[ProgramAdded], every: int) -> list[ProgramAdded]:
    seen: dict[str, int] = {}
    kept = []
    for program in programs:
        index = seen[program.problem_id] = seen.get(program.problem_id, -1) + 1
        if index % every == 0:
            kept.append(program)
    return kept


def plan_campaign(
    questions: Questions, chosen: Chosen, settings: Settings, name: str | None, *, once: bool = False
) -> Planned:
    """The plan, checked against a stored campaign of that name; UserError when that one had another plan.

    With `once` rollouts of one source share the executions of the first.
    """
    wanted = PlanSettings(
        service=settings.service,
        seed=settings.seed,
        hard_limit_ns=round((DEFAULT_LIMIT_S if settings.limit == "own" else settings.limit) * 1e9),
        memory_bytes=(settings.memory_mb or DEFAULT_MEMORY_MIB) * MIB,
        output_bytes=(settings.output_mb or DEFAULT_OUTPUT_MIB) * MIB,
        process_limit=settings.processes,
        repetitions=settings.repetitions,
        warmups=settings.warmups,
        problem_limits=_in_force(chosen, settings),
    )
    plan = make_plan(chosen.programs, chosen.tests, wanted, name=name, once=once)
    campaign = plan.opening.campaign_id
    stored = questions.rows("SELECT * FROM campaign WHERE campaign_id = $id", id=campaign)
    if stored and stored[0]["plan_digest"] != plan.opening.plan_digest:
        raise UserError(
            f"campaign {campaign!r} was opened with {_difference(stored[0], plan.opening)};"
            " name a new one with --campaign"
        )
    return Planned(plan, chosen)


_UNITS = {"hard_limit_ns": (1_000_000_000, " s"), "memory_bytes": (MIB, " MiB"), "output_bytes": (MIB, " MiB")}


def _difference(stored: Mapping[str, Any], opening: CampaignOpened) -> str:
    """What differs between a stored campaign and a new plan: settings by value, members by number."""
    differing = []
    for name in ("service", "shuffle_seed", *_UNITS, "process_limit", "repetitions", "warmups"):
        before, now = stored[name], getattr(opening, name)
        if before != now:
            divisor, unit = _UNITS.get(name, (None, ""))
            texts = [f"{value / divisor:g}{unit}" if divisor else str(value) for value in (before, now)]
            label = name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")
            differing.append(f"{label} {texts[0]}, not {texts[1]}")
    if set(stored["programs"]) != set(opening.programs):
        differing.append(f"{len(stored['programs'])} programs, not these {len(opening.programs)}")
    return "; ".join(differing) or "other tests or limits of problems"


def _in_force(chosen: Chosen, settings: Settings) -> dict[str, OwnLimits]:
    """The limits that problems of the campaign state, without those that the user sets for all."""
    problems = {program.problem_id for program in chosen.programs}
    stated = {
        problem: OwnLimits(
            limits.time_ns if settings.limit == "own" else None,
            limits.memory_bytes if settings.memory_mb is None else None,
            limits.output_bytes if settings.output_mb is None else None,
        )
        for problem, limits in sorted(chosen.limits.items())
        if problem in problems
    }
    return {problem: limits for problem, limits in stated.items() if limits != OwnLimits(None, None, None)}


def left_of(questions: Questions, plan: Plan) -> Left:
    """What is left of a plan at the questions' cut."""
    campaign = plan.opening.campaign_id
    done = set(questions.query(DONE_WORKS, campaign=campaign)["work_id"].to_pylist())
    left = tuple(request for request in plan.requests if request.work_id not in done)
    known = {(r["program_id"], r["test_id"]): r["wall_ns"] + OVERHEAD_NS for r in questions.rows(DURATIONS)}
    total, unknown = estimate_ns(left, known, TYPICAL_RUN_NS)
    return Left(
        campaign,
        len(plan.requests),
        left,
        total * (plan.opening.repetitions + plan.opening.warmups),
        unknown,
        stored=bool(known),
    )
