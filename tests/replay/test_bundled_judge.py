"""The judge that travels in a bundle, against the kernel: two implementations of the definitions that share no code."""

from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.consumers.exports.replayer import mapping
from lapledger.consumers.exports.replayer.durations import Durations
from lapledger.consumers.exports.replayer.facts import Problem, Run
from lapledger.consumers.exports.replayer.judging import Judge
from lapledger.consumers.exports.replayer.package_limits import enforce as bundled_enforce
from lapledger.consumers.exports.replayer.student_t import interval
from lapledger.replay.calibration import Fit, with_stored
from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import analytic_interval
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome, ProblemMeasurements, durations, kill_bounds
from lapledger.replay.package_limits import PackageLimits, enforce
from tests.replay.builders import measured
from tests.replay.test_definitions import FINISHED, criteria, worlds

ALLOWED = {
    Outcome.OK: "accepted",
    Outcome.WRONG_ANSWER: "wrong_answer",
    Outcome.RUN_TIME_ERROR: "run_time_error",
    Outcome.MEMORY_LIMIT: "memory_limit",
    Outcome.OUTPUT_LIMIT: "output_limit",
    Outcome.TIME_LIMIT: "time_limit",
    Outcome.FAILED: "failed",
}
ALL = (*FINISHED, Outcome.TIME_LIMIT, Outcome.TIME_LIMIT, Outcome.MISSING, Outcome.FAILED)


def as_bundled(m: ProblemMeasurements) -> Problem:
    """The same measurements as a bundle gives them."""

    def present(values):
        return [int(value) for value in values if value >= 0]

    def run(p, t):
        if m.outcome[p, t] == Outcome.MISSING:
            return None
        memory = present(m.on_clock("memory")[p, t])
        clocks = {"wall": present(m.wall_ns[p, t]), "cpu": present(m.cpu_ns[p, t]), "memory": memory}
        return Run(ALLOWED[Outcome(m.outcome[p, t])], clocks, int(m.startup_ns[p, t]), int(m.limit_ns[p, t]))

    kinds = ("original", "correctness", "optimization")
    sizes = ("input_chars", "output_chars")
    tests = [
        {name: bool(getattr(m.tests, name)[t]) for name in kinds}
        | {name: int(getattr(m.tests, name)[t]) for name in sizes}
        | {"test_id": m.tests.ids[t]}
        for t in range(len(m.tests.ids))
    ]
    programs = [
        {
            "program_id": name,
            "model": model,
            "source_blob": f"{int(m.duplicate[p]):064x}",
            "reference": bool(m.reference[p]),
            "candidate": bool(m.candidate[p]),
        }
        for p, (name, model) in enumerate(zip(m.programs, m.models, strict=True))
    ]
    runs = [[run(p, t) for t in range(len(tests))] for p in range(len(programs))]
    return Problem(m.problem, tests, programs, runs, {"time_limit_ns": None, "memory_limit_bytes": None})


LIMITS = st.builds(PackageLimits, *[st.one_of(st.none(), st.integers(1, 7))] * 2)
SLOPES = ("slope", "log-slope")
ANY = st.one_of(criteria(), st.sampled_from(list(PRESETS.values()))).filter(
    lambda wanted: wanted.statistic not in SLOPES
)


@given(m=worlds(ALL, programs=6, tests=4), criterion=ANY)
@settings(max_examples=150)
def test_both_judges_report_the_same_of_every_program(m, criterion):
    """Verdict, pool and both bounds of q, whatever was killed, crashed or never run."""
    check(m, criterion)


@pytest.mark.parametrize("statistic", SLOPES)
@pytest.mark.parametrize("outcome", [1, 2, 6])
def test_both_fit_the_same_slopes(statistic, outcome):
    """Durations against the references' medians of 4 and 9 ns over two tests; one run ended, failed or was killed."""
    wall = [[3, 9], [4, 8], [5, 30], [4, 10], [2, 2]]
    outcomes = [[1, 1], [1, 1], [1, 1], [1, 1], [1, outcome]]
    m = measured(wall, reference=[0, 1, 2, 3], outcome=outcomes, limit=2)
    check(m, Criterion(tau="50", statistic=statistic, timeouts="tolerated"))


@given(m=worlds(ALL, programs=6, tests=4), criterion=ANY, limits=LIMITS)
@settings(max_examples=100)
def test_both_put_a_problem_s_own_limits_alike(m, criterion, limits):
    """Limits of time and memory among the measured values, and runs that were killed below and above them."""
    m = replace(m, memory_bytes=m.wall_ns[:, :, ::-1])
    names = {"time_limit_ns": limits.time_ns, "memory_limit_bytes": limits.memory_bytes}
    bundled = bundled_enforce(replace(as_bundled(m), limits=names))
    check(enforce(m, limits), replace(criterion, own_limits="enforced"), bundled)


def check(m, criterion, bundled=None):
    try:
        kernel = judge(m, criterion)
    except ReplayError:
        return
    verdicts = Judge(bundled or as_bundled(m), asdict(criterion)).judged().verdicts
    for row, verdict in enumerate(verdicts):
        den = int(kernel.q_den[row])
        q = (Fraction(int(kernel.q_lo[row]), den), Fraction(int(kernel.q_hi[row]), den)) if den else None
        assert (verdict.status, verdict.references) == (kernel.status[row], kernel.pool_size[row]), kernel.reason[row]
        assert verdict.q == q
        assert (verdict.c, verdict.g) == (kernel.c[row], kernel.g[row]), kernel.reason[row]


@given(fresh=worlds(ALL, programs=4, tests=3), stored=worlds(ALL, programs=5, tests=4), data=st.data())
@settings(max_examples=100)
def test_both_map_stored_references_alike(fresh, stored, data):
    """Lines and powers, on any clock; killed runs, tests and programs that only one campaign has."""
    stored = replace(stored, programs=("p0", *(f"s{n}" for n in range(1, len(stored.programs)))))
    coefficients = data.draw(st.sampled_from([(1.7, -200_000.0, 1.0), (0.5, 0.0, 1.0), (3.0, 0.0, 0.9)]))
    criterion = data.draw(ANY.filter(lambda kind: kind.clock != "memory"))
    of = (criterion.clock, criterion.estimator, criterion.startup)
    fit = Fit(*coefficients[:2], 9, 3, *of, power=coefficients[2])
    bundled = mapping.with_stored(as_bundled(fresh), as_bundled(stored), asdict(fit))
    check(with_stored(fresh, stored, fit), criterion, bundled)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40))
def test_both_give_the_same_interval(values):
    """Student's t and Wilson's, from two values on."""
    (result, method), (expected, name) = interval(values), analytic_interval(np.array(values))
    assert method == name
    assert result == (None if expected is None else pytest.approx(list(expected), rel=1e-9, abs=1e-9))


@given(
    repetitions=st.lists(st.integers(1, 50), min_size=1, max_size=5),
    estimator=st.sampled_from(["min", "median", "mean", "hodges-lehmann"]),
    startup=st.sampled_from(["keep", "subtract"]),
    killed=st.booleans(),
)
def test_both_read_repetitions_alike(repetitions, estimator, startup, killed):
    """Estimator, start-up and the bound of a killed run, on each clock."""
    outcome = [[Outcome.TIME_LIMIT if killed else Outcome.OK]]
    m = measured([[repetitions]], reference=[0], outcome=outcome, limit=40, startup_ns=np.array([[7]]))
    for clock in ("wall",) if startup == "subtract" else ("wall", "cpu"):
        criterion = Criterion(estimator=estimator, startup=startup, clock=clock)
        result = Durations(as_bundled(m), asdict(criterion))
        assert result.ns == durations(m, criterion).tolist()
        assert result.bound == kill_bounds(m, criterion).tolist()
