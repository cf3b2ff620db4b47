"""The kernel against a slow judge written from the definitions: every environment, statistic and rule together."""

import dataclasses
from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lapledger.replay.criteria import ENVIRONMENTS, Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.fields import FIELDS
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome
from tests.replay.builders import make_tests, measured
from tests.replay.oracle import Run, UnknownError, World

STEP = 300_000
"""Durations are whole multiples of 0.3 ms, so that limits of 1 and 2 ms lie between them."""
ALLOWED = {name: field.doc.allowed.split(" | ") for name, field in FIELDS.items() if " | " in field.doc.allowed}
PERCENTS = st.sampled_from(["10", "33.4", "50", "80", "100"])
CHOICES = {
    **{
        name: st.sampled_from(ALLOWED[name])
        for name in ("reading", "statistic", "percentile", "correctness", "timeouts")
    },
    **{name: st.sampled_from(ALLOWED[name]) for name in ("keep", "in_time", "missing")},
    "reward": st.sampled_from(["collapsed-binary", "additive", "optimization-only", "multitask"]),
    "tau": PERCENTS,
    "timeout_ms": st.sampled_from([1, 2]),
    "keep_ms": st.just(1),
    "keep_chars": st.sampled_from([2, 4]),
    "keep_share": PERCENTS,
    "limit_ms": st.sampled_from([1, 2]),
    "limit_quantile": PERCENTS,
    "limit_ranked": PERCENTS,
    "limit_factor": st.sampled_from(["0.5", "1.7"]),
    "min_references": st.sampled_from([1, 2]),
}


@st.composite
def criteria(draw, **fixed):
    """Any criterion: about a third of the fields differ from their defaults."""
    given_ = {name: draw(choice) for name, choice in CHOICES.items() if draw(st.sampled_from([True, False, False]))}
    try:
        return Criterion(**(given_ | fixed))
    except ReplayError:
        assume(condition=False)
        raise


@st.composite
def worlds(draw, outcomes, *, programs=6, tests=4):
    """A small problem with ties, duplicates, all kinds of tests, and the outcomes given; killed at 0.6 to 1.8 ms."""
    shape = (draw(st.integers(1, programs)), draw(st.integers(1, tests)))

    def grid(values):
        flat = draw(st.lists(values, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
        return np.array(flat, dtype=np.int64).reshape(shape)

    def row(values, length):
        return np.array(draw(st.lists(values, min_size=length, max_size=length)))

    kinds = {name: row(st.booleans(), shape[1]) for name in ("original", "correctness")}
    kinds["optimization"] = row(st.sampled_from([True, True, True, False]), shape[1])
    sizes = [row(st.integers(0, 3), shape[1]) for _ in range(2)]
    duplicate = row(st.integers(0, 4), shape[0])
    return measured(
        grid(st.integers(1, 7)) * STEP,
        reference=np.flatnonzero(row(st.sampled_from([True, True, False]), shape[0])),
        outcome=grid(st.sampled_from(outcomes)),
        limit=grid(st.sampled_from([2, 4, 6])) * STEP,
        duplicate=duplicate + 10 * np.arange(shape[0]) * (duplicate > 1),
        tests=dataclasses.replace(make_tests(shape[1]), **kinds, input_chars=sizes[0], output_chars=sizes[1]),
    )


KINDS = {Outcome.OK: "ok", Outcome.WRONG_ANSWER: "wrong", Outcome.MISSING: "missing"}


def seen(m):
    """The runs as they were seen; a killed one has no run."""

    def run(outcome, wall):
        return None if outcome == Outcome.TIME_LIMIT else Run(int(wall), KINDS.get(Outcome(outcome), "failed"))

    table = zip(m.outcome, m.wall_ns[:, :, 0], strict=True)
    return [[run(*cell) for cell in zip(*row, strict=True)] for row in table]


def summary(verdicts, row):
    """c, g and q of one program as the kernel says them; None where undecided."""
    c, g = (None if gate[row] == -1 else int(gate[row]) for gate in (verdicts.c, verdicts.g))
    lo, hi, den = int(verdicts.q_lo[row]), int(verdicts.q_hi[row]), int(verdicts.q_den[row])
    return c, g, (Fraction(lo, den), Fraction(hi, den)) if den else None


FINISHED = (Outcome.OK,) * 7 + (Outcome.WRONG_ANSWER, Outcome.RUN_TIME_ERROR)


@given(m=worlds(FINISHED), criterion=st.one_of(criteria(), st.sampled_from(list(ENVIRONMENTS.values()))))
@settings(max_examples=150)
def test_where_all_is_seen_the_verdict_is_the_definition(m, criterion):
    """c, g and q, exactly; nothing is undecided that the definitions decide."""
    check_exactly(m, criterion)


@given(m=worlds((*FINISHED, Outcome.MISSING)), data=st.data())
@settings(max_examples=80)
def test_the_rule_for_missing_results(m, data):
    """`skip` judges on the tests that have results, `fail` counts them as failed: the definitions decide everything."""
    check_exactly(m, data.draw(criteria(missing=data.draw(st.sampled_from(["skip", "fail"])))))


def check_exactly(m, criterion):
    verdicts = judge(m, criterion)
    try:
        world = World(m, criterion, seen(m))
        judged = [world.judge(p) for p in range(len(m.programs))]
    except UnknownError:
        return
    for row, expected in enumerate(judged):
        c, g, q = summary(verdicts, row)
        assert c == expected.c
        if expected.q is not None:
            assert g == expected.g
            assert q == (expected.q, expected.q)
        elif criterion.tau != "100":
            assert g in (None, 0)


@given(
    m=worlds((*FINISHED, Outcome.TIME_LIMIT, Outcome.TIME_LIMIT, Outcome.MISSING), programs=5, tests=3), data=st.data()
)
@settings(max_examples=120)
def test_no_completion_of_what_was_not_seen_contradicts_a_verdict(m, data):
    """However killed and missing runs had ended: what is decided stays as it is, and q lies between its bounds.

    The references that were proven to be correct stay the yardstick: an undecided one is never in the pool.
    """
    criterion = data.draw(criteria(missing="undecided"))
    verdicts = judge(m, criterion)
    base, pool = (
        np.flatnonzero(m.reference & (judge(m, variant).c == 1)) for variant in (criterion.unfiltered(), criterion)
    )
    for number in range(6):
        try:
            world = World(m, criterion, completed(m, number), base=base.tolist(), pool=pool.tolist())
            judged = [world.judge(p) for p in range(len(m.programs))]
        except UnknownError:
            continue
        for row, expected in enumerate(judged):
            c, g, q = summary(verdicts, row)
            assert c in (None, expected.c)
            assert g in (None, expected.g) or expected.g is None
            if q is not None and expected.q is not None:
                assert q[0] <= expected.q <= q[1]


def completed(m, number):
    """One way in which all that was not seen could have ended."""
    draw = np.random.default_rng(number)
    runs = seen(m)
    for p, row in enumerate(runs):
        for t, run in enumerate(row):
            if run is None:
                bound = int(m.limit_ns[p, t])
                after = int(draw.choice([1, STEP // 2, STEP, 2 * STEP, 20 * STEP]))
                kinds = ["ok", "wrong"] if m.reference[p] else ["ok", "wrong", "failed"]
                row[t] = Run(bound + after, str(draw.choice(kinds)), bound)
            elif run.kind == "missing":
                row[t] = Run(int(draw.integers(1, 9)) * STEP // 2, str(draw.choice(["ok", "ok", "failed"])))
    return runs
