"""A problem's own limits put to runs that were executed under others: as if they had been enforced then."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.replay.criteria import Criterion
from lapledger.replay.engines import Engine
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome
from lapledger.replay.package_limits import NO_LIMITS, PackageLimits, enforce
from tests.replay.builders import measured, problems
from tests.replay.test_definitions import criteria

OK, WRONG, CRASH, MEMORY, KILLED, MISSING = (
    Outcome.OK,
    Outcome.WRONG_ANSWER,
    Outcome.RUN_TIME_ERROR,
    Outcome.MEMORY_LIMIT,
    Outcome.TIME_LIMIT,
    Outcome.MISSING,
)
ENFORCED = Criterion(own_limits="enforced")


@pytest.mark.parametrize(
    ("outcome", "wall", "memory", "hard", "due"),
    [
        (OK, 5, 5, 9, (OK, 5)),  # equal to a limit is within it
        (OK, 6, 1, 9, (KILLED, 5)),
        (WRONG, 6, 6, 9, (KILLED, 5)),  # time ends it before its answer is seen
        (CRASH, 6, 1, 9, (KILLED, 5)),
        (OK, 5, 6, 9, (MEMORY, 5)),
        (CRASH, 1, 6, 9, (CRASH, 5)),  # how it would have ended is known
        (KILLED, 9, 1, 9, (KILLED, 5)),  # it would have been killed earlier
        (KILLED, 4, 1, 4, (KILLED, 4)),  # a tighter limit was in force
        (KILLED, -1, 1, 0, (KILLED, 0)),  # killed at a limit that is not known
        (MISSING, -1, -1, -1, (MISSING, -1)),
    ],
)
def test_one_run_under_limits_of_five(outcome, wall, memory, hard, due):
    """Outcome and limit in force, worked out by hand for 5 ns and 5 bytes."""
    m = measured([[wall]], reference=[0], outcome=[[outcome]], limit=hard, memory_bytes=np.array([[[memory]]]))
    under = enforce(m, PackageLimits(5, 5))
    assert (under.outcome[0, 0], under.limit_ns[0, 0]) == due
    assert (under.wall_ns == m.wall_ns).all()


@given(m=problems(outcomes=(OK, WRONG, CRASH), programs=6, tests=3), criterion=criteria(), limit=st.integers(1, 7))
def test_the_verdicts_are_those_of_a_campaign_that_was_run_under_the_limit(m, criterion, limit):
    """What a worker that enforces it records: a kill at the limit in place of every longer run."""
    longer = m.wall_ns.max(axis=-1) > limit
    executed = replace(
        m,
        outcome=np.where(longer, np.int8(KILLED), m.outcome),
        wall_ns=np.where(longer[:, :, None], limit, m.wall_ns),
        limit_ns=np.full_like(m.limit_ns, limit),
    )
    criterion = replace(criterion, clock="wall")
    enforced = judge(enforce(m, PackageLimits(limit)), replace(criterion, own_limits="enforced"))
    due = judge(executed, criterion)
    for name in ("status", "c", "g", "q_lo", "q_hi", "q_den", "pool_size"):
        assert (getattr(enforced, name) == getattr(due, name)).all(), name


@pytest.mark.parametrize("engine", ["numpy", "numba", "torch"])
def test_every_engine_knows_the_key(engine):
    """The limits are put to the measurements before an engine sees them; by hand: 6 ns is over 5."""
    m = enforce(measured([[4], [6], [5]], reference=[0, 2]), PackageLimits(5))
    (verdicts,) = Engine(engine).judge([m], ENFORCED)
    assert verdicts.status.tolist() == [1, 0, 1]


@pytest.mark.parametrize("engine", ["numpy", "numba", "torch"])
@pytest.mark.parametrize("prepared", [False, True])
def test_measurements_under_other_limits_are_refused(engine, prepared):
    """Never judged as if they were what the criterion names."""
    m = measured([[4], [6]], reference=[0])
    m, criterion = (enforce(m, NO_LIMITS), Criterion()) if prepared else (m, ENFORCED)
    with pytest.raises(ReplayError, match="own_limits"):
        Engine(engine).judge([m], criterion)


def test_a_criterion_names_the_clocks_that_it_needs():
    """Memory is read where its limit counts."""
    assert (Criterion().clocks, ENFORCED.clocks) == ({"wall"}, {"wall", "memory"})
    assert asdict(Criterion())["own_limits"] == "ignored"
