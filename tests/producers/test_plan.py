"""The plan of a campaign: every program on every test once, shuffled by a seed, named after what it holds."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.codec.canonical import sha256_fields, work_id
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import ExecutionRequested, ProgramAdded, TestAdded
from lapledger.producers.campaigns.attempts import Judged, charged
from lapledger.producers.campaigns.plan import PlanSettings, estimate_ns, make_plan
from lapledger.producers.sandbox.limits import Cut, Execution, Outcome

SETTINGS = PlanSettings(
    service="local",
    seed=0,
    hard_limit_ns=10**10,
    memory_bytes=1 << 30,
    output_bytes=1 << 20,
    process_limit=16,
    repetitions=1,
    warmups=0,
)


def program(problem: str, name: str, *, model: str = "human", label: str = "accepted") -> ProgramAdded:
    """A program of a problem."""
    return ProgramAdded(
        problem_id=problem,
        program_id=f"{problem}/{name}",
        name=f"{name}.py",
        model=model,
        label=label,
        language="python3",
        source_blob="",
        source_bytes=0,
        rollout_id=None,
    )


def test_of(problem: str, name: str) -> TestAdded:
    """A test of a problem."""
    return TestAdded(
        problem_id=problem,
        test_id=f"{problem}/{name}",
        ordinal=0,
        group="",
        original=True,
        correctness=True,
        optimization=True,
        input_blob="",
        answer_blob="",
        input_bytes=0,
        input_chars=0,
        output_bytes=0,
        output_chars=0,
    )


test_of.__test__ = False  # type: ignore[attr-defined]  # it makes a value

PROGRAMS = [
    program("a", "one"),
    program("a", "two", label="wrong_answer"),
    program("b", "three", model="model"),
    program("b", "four"),
]
TESTS = [test_of("a", "1"), test_of("a", "2"), test_of("b", "1")]
WORKS = {("a/one", "a/1"), ("a/one", "a/2"), ("a/two", "a/1"), ("a/two", "a/2"), ("b/three", "b/1"), ("b/four", "b/1")}


def pairs(requests: Sequence[ExecutionRequested]) -> list[tuple[str, str]]:
    """(program, test) in the order of the plan."""
    return [(request.program_id, request.test_id) for request in requests]


@given(seed=st.integers(0, 2**63 - 1), programs=st.permutations(PROGRAMS), tests=st.permutations(TESTS))
def test_every_pair_once_in_an_order_that_the_seed_alone_decides(
    seed: int, programs: list[ProgramAdded], tests: list[TestAdded]
) -> None:
    """However programs and tests are listed, the plan is the same; places count from 0."""
    plan = make_plan(programs, tests, replace(SETTINGS, seed=seed))
    assert set(pairs(plan.requests)) == WORKS
    assert [request.position for request in plan.requests] == list(range(6))
    keys = [sha256_fields("place", seed, r.problem_id, r.program_id, r.test_id) for r in plan.requests]
    assert keys == sorted(keys)
    assert plan == make_plan(PROGRAMS, TESTS, replace(SETTINGS, seed=seed))


def test_the_campaign_is_called_after_its_plan() -> None:
    """The same plan gets the same name; any setting, or one program more, gives another."""
    named = {make_plan(PROGRAMS, TESTS, replace(SETTINGS, **change)).opening.campaign_id for change in CHANGES}
    named.add(make_plan(PROGRAMS[:3], TESTS, SETTINGS).opening.campaign_id)
    assert len(named) == len(CHANGES) + 1
    assert make_plan(PROGRAMS, TESTS, SETTINGS).opening.campaign_id in named
    assert all(name.startswith("c-") and len(name) == 14 for name in named)


CHANGES: list[dict[str, int]] = [{}, {"seed": 1}, {"hard_limit_ns": 1}, {"repetitions": 2}, {"warmups": 1}]


def test_the_opening_names_members_pool_and_works() -> None:
    """References are the human programs labelled accepted; a work's id hashes campaign, program, test and block."""
    plan = make_plan(PROGRAMS, TESTS, SETTINGS, name="main")
    assert plan.opening.references == ("a/one", "b/four")
    assert plan.opening.programs == ("a/one", "a/two", "b/four", "b/three")
    assert (plan.opening.problems, plan.opening.works) == (("a", "b"), 6)
    assert all(r.work_id == work_id("main", r.program_id, r.test_id, 0) for r in plan.requests)


@pytest.mark.parametrize("name", ["", " x", "a b", "\x1b[31m", "x" * 65, "-x", "a\n"])
def test_a_campaign_s_name_is_one_plain_text(name: str) -> None:
    """It is printed, typed and stored: nothing else gets in."""
    with pytest.raises(UserError, match="use 1 to 64 letters"):
        make_plan(PROGRAMS, TESTS, SETTINGS, name=name)


def test_nothing_to_run_is_stated() -> None:
    """No program, or no test."""
    for programs, tests in (([], TESTS), (PROGRAMS, [])):
        with pytest.raises(UserError, match="nothing to run"):
            make_plan(programs, tests, SETTINGS)


def test_the_estimate_uses_stored_durations_then_their_mean() -> None:
    """Two of six works known at 10 and 30: 40 for them, the mean 20 for each of the other four; else 7 each."""
    requests = make_plan(PROGRAMS, TESTS, SETTINGS).requests
    assert estimate_ns(requests, {("a/one", "a/1"): 10, ("a/one", "a/2"): 30}, 7) == (40 + 4 * 20, 4)
    assert estimate_ns(requests, {}, 7) == (42, 6)
    assert estimate_ns([], {}, 7) == (0, 0)


@pytest.mark.parametrize(
    ("outcome", "cut", "charged_as"),
    [
        ("sandbox_fault", "memory", "memory_limit"),
        ("sandbox_fault", "", "sandbox_fault"),
        ("run_time_error", "", "run_time_error"),
    ],
)
def test_only_a_repeated_want_of_memory_is_charged(outcome: Outcome, cut: Cut, charged_as: str) -> None:
    """At the last try: a run that took much of a machine without memory is the program's; any other fault never is."""
    judged = Judged(Execution(outcome, cut=cut, fault="no room"), outcome, "", None)
    assert charged(judged).outcome == charged_as


def rollout(name: str, source: str, problem: str = "a") -> ProgramAdded:
    """A rollout's program."""
    return replace(program(problem, name, model="m-1", label=""), source_blob=source, rollout_id=f"rollout of {name}")


def test_a_source_is_run_once_and_every_rollout_of_it_is_a_member() -> None:
    """Of s, s, t, s on problem a and s on b, the first s and t of a and the s of b are run, beside all others."""
    rollouts = [rollout("1", "s"), rollout("2", "s"), rollout("3", "t"), rollout("4", "s"), rollout("5", "s", "b")]
    plan = make_plan([*rollouts, *PROGRAMS], TESTS, SETTINGS, name="c", once=True)
    run = {("a/1", "a/1"), ("a/1", "a/2"), ("a/3", "a/1"), ("a/3", "a/2"), ("b/5", "b/1")}
    assert set(pairs(plan.requests)) == WORKS | run
    assert set(plan.opening.programs) == {p.program_id for p in (*rollouts, *PROGRAMS)}
    assert (plan.opening.works, plan.opening.references) == (len(WORKS | run), ("a/one", "b/four"))
    seen = [(s.campaign_id, s.problem_id, s.program_id, s.executed_program_id, s.source_blob) for s in plan.shared]
    assert seen == [("c", "a", "a/2", "a/1", "s"), ("c", "a", "a/4", "a/1", "s")]


def test_who_shares_is_part_of_the_plan() -> None:
    """With and without a twin are two campaigns; without `once` a twin is run, and without twins `once` is nothing."""
    item, twins = [rollout("1", "s")], [rollout("1", "s"), rollout("2", "s")]
    assert make_plan(item, TESTS, SETTINGS) == make_plan(item, TESTS, SETTINGS, once=True)
    names = {make_plan(some, TESTS, SETTINGS, once=True).opening.campaign_id for some in (item, twins)}
    assert len(names) == 2
    assert len(make_plan(twins, TESTS, SETTINGS).requests) == 4
    assert make_plan(twins, TESTS, SETTINGS).shared == ()
