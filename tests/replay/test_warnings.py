"""What an answer's warnings say: runs killed before the limit asked for, and maps beyond what they were fitted on."""

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.replay.calibration import fit_kinds, outside_warning
from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.judging.gates import Status, judge
from lapledger.replay.measurements import ABSENT
from lapledger.replay.studies.warnings import Variants, cap_warning, killed_before, warnings_of
from tests.replay.builders import MS, make_tests, measured
from tests.replay.worlds import common, measurements


def killed(limit=2):
    """Two runs of one program were killed at 2 ms, the reference's took 1 ms."""
    wall = np.array([[limit, limit], [1, 1]]) * MS
    return measured(wall, reference=[1], outcome=[[6, 6], [1, 1]], limit=limit * MS)


def test_a_limit_above_what_was_executed_is_stated():
    """At 3 ms asked the sentence counts both runs, at 2 ms there is none."""
    criterion, executed = (Criterion(timeouts="tolerated", limit_ms=ms) for ms in (3, 2))
    assert cap_warning([killed()], criterion) == (
        "the criterion's limit exceeds the executed limit (2 ms): 2 runs of 1 undecided candidate were killed below it,"
        " and only running them again with the longer limit can decide them"
    )
    assert cap_warning([killed()], executed) == ""
    assert cap_warning([killed()], Criterion()) == ""


def test_a_kill_that_settles_the_verdict_is_nothing_to_be_wary_of():
    """The kill fails a test of correctness too, so no longer limit changes the verdict: all is decided."""
    m = dataclasses.replace(killed(), tests=make_tests(2, original=2))
    criterion = Criterion(limit_ms=3)
    assert judge(m, criterion).censored_below_limit.tolist() == [2, 0]
    assert judge(m, criterion).status[0] == Status.FAIL
    assert (killed_before([m], criterion), cap_warning([m], criterion)) == ((0, 0), "")


def test_a_program_that_one_tau_leaves_open_counts_once():
    """Killed at 2 ms where references take 1, 3 and 5: of 8 ms allowed its percentile is 33, 67 or 100.

    At tau 10 it fails whatever it would have taken; at 50 it is open; at both together it is one program.
    """
    m = measured(np.array([[2], [1], [3], [5]]) * MS, reference=[1, 2, 3], outcome=[[6], [1], [1], [1]])
    m = dataclasses.replace(m, limit_ns=np.array([[2], [9], [9], [9]]) * MS)
    criterion = Criterion(timeouts="tolerated", timeout_ms=8)
    for taus, count in ((("10",), 0), (("50",), 1), (("10", "50", "50"), 1)):
        assert killed_before([m], criterion, Variants(taus)) == (count, count)


def test_a_limit_that_is_not_known_is_stated_so():
    """An imported kill tells no limit: the sentence says that, and what hangs on it."""
    m = dataclasses.replace(killed(), limit_ns=np.full((2, 2), ABSENT))
    warning = cap_warning([m], Criterion(timeouts="tolerated", limit_ms=3))
    assert warning.startswith(
        "the criterion's limit exceeds the executed limit (a limit that is not known): 2 runs of "
    )


def test_a_criterion_is_named_among_several():
    """Of two criteria the one that is wary of something says which it is; the same words are said once."""
    criteria = {"loose": Criterion(limit_ms=3), "tight": Criterion(limit_ms=1)}
    (warning,) = warnings_of([killed()], criteria, None)
    assert warning.startswith("loose: the criterion's limit exceeds")
    (alone,) = warnings_of([killed()], {"loose": criteria["loose"]}, None)
    assert warning == f"loose: {alone}"


RELATIVE = ("relative-p20", "relative-p50", "ranked-worst-p50", "timeout-2s", "pre-0.1s", "top-30")


@given(
    m=st.lists(measurements(), min_size=1, max_size=3),
    criterion=st.one_of(common(), st.sampled_from([PRESETS[name] for name in RELATIVE])),
)
@settings(deadline=None, max_examples=150)
def test_as_many_runs_as_verdicts_leave_open(m, criterion):
    """The oracle is `beyond` of every undecided candidate's verdict, run by run, whatever sets the limit."""
    m = [dataclasses.replace(problem, problem=f"p{n}") for n, problem in enumerate(m)]
    judged = [(judge(problem, criterion), problem.candidate) for problem in m]
    open_ = [candidate & (v.status == Status.UNDECIDED) & (not v.excluded) for v, candidate in judged]
    counts = [v.censored_below_limit[mine] for (v, _), mine in zip(judged, open_, strict=True)]
    expected = sum(int(count.sum()) for count in counts), sum(int((count > 0).sum()) for count in counts)
    assert killed_before(m, criterion) == expected


def test_bounds_of_killed_references_are_mapped_and_counted():
    """Pairs of 10 to 40 ms; a reference that was not re-run ended once in range and was killed once at 500 ms.

    Both are what the map moves, the bound among them, and 500 ms lies outside. A kill in range lies inside.
    """
    kinds = make_tests(2, original=2)
    for cap, outside in ((500, 2), (35, 0)):
        stored = [
            measured(
                np.array([[10, 20], [30, 40], [25, cap]]) * MS,
                reference=[0, 1, 2],
                outcome=[[1, 1], [1, 1], [1, 6]],
                limit=cap * MS,
                problem=name,
                tests=kinds,
            )
            for name in ("p", "q")
        ]
        fresh = [
            measured(np.array([[12, 22], [32, 42]]) * MS, reference=[0, 1], problem=name, campaign="new", tests=kinds)
            for name in ("p", "q")
        ]
        (fit,) = fit_kinds(stored, fresh, Criterion(), ["affine"])
        assert (fit.low_ns, fit.high_ns, fit.moved, fit.outside) == (10 * MS, 40 * MS, 4, outside)
        assert bool(outside_warning(fit)) == bool(outside)
        assert warnings_of(fresh, {"p": Criterion()}, fit) == ((outside_warning(fit),) if outside else ())
