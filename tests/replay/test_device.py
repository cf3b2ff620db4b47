"""Ranks in torch: on any device the verdicts, ranks and estimates of the numpy kernel, to the last bit."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.devices.batches import hold, judge_on
from lapledger.replay.devices.device import counts, find_device
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import estimate
from lapledger.replay.fields import OF_PERCENTILES, OF_TIMES
from lapledger.replay.judging.gates import judge
from lapledger.replay.judging.ranks import Order
from lapledger.replay.measurements import Outcome
from tests.replay.builders import make_tests, measured, problems

CPU = "cpu"
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
SOME = (*(Outcome.OK,) * 6, Outcome.TIME_LIMIT, Outcome.MISSING, Outcome.WRONG_ANSWER, Outcome.RUN_TIME_ERROR)
HALF = Criterion(tau="50")
SEVERAL = st.lists(st.one_of(problems(outcomes=SOME), problems(programs=9)), min_size=1, max_size=4)


def assert_same(ours, theirs):
    """Every field of two verdicts is equal: integers to the bit, words to the letter."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        names = {field.name for field in dataclasses.fields(a)} - {"details_from"}
        for name in sorted(names | {"k_lo", "k_hi", "reason"}):
            x, y = getattr(a, name), getattr(b, name)
            assert np.array_equal(x, y), name
            assert np.asarray(x).dtype == np.asarray(y).dtype, name


def random_problems(count=5, seed=0):
    """Problems of different sizes with ties, exact duplicates, killed and missing runs, and two models."""
    random = np.random.default_rng(seed)
    for number in range(count):
        shape = 4 + 3 * number, 2 + number
        outcome = random.choice(np.array(SOME), size=shape, p=[0.15] * 6 + [0.025] * 4)
        yield measured(
            random.integers(1, 9, size=shape),
            reference=np.flatnonzero(random.random(shape[0]) < 0.6),
            outcome=outcome,
            limit=random.integers(2, 7, size=shape),
            problem=f"q{number}",
            models=tuple(random.choice(["human", "a model"], size=shape[0]).tolist()),
            duplicate=random.integers(0, 2 * shape[0], size=shape[0]),
            tests=make_tests(shape[1], correctness=1, original=1),
        )


@given(
    several=SEVERAL,
    tau=st.sampled_from(["100", "50", "33.333333333", "10"]),
    reading=st.sampled_from(["leaderboard", "score"]),
    percentile=st.sampled_from(["mean", "strict", "weak", "rank"]),
    missing=st.sampled_from(["undecided", "skip", "fail"]),
    rest=st.sampled_from(
        [
            {},
            {"timeouts": "tolerated"},
            {"timeouts": "tolerated", "correctness": "original"},
            {"correctness": "original", "reward": "additive"},
        ]
    ),
)
@settings(deadline=None, max_examples=150)
def test_verdicts_are_those_of_numpy(several, tau, reading, percentile, missing, rest):
    """Ties, duplicates, killed, failed and missing runs, problems of any size side by side: nothing differs."""
    several = [dataclasses.replace(m, tests=make_tests(len(m.tests.ids), original=1)) for m in several]
    criterion = Criterion(tau=tau, reading=reading, percentile=percentile, missing=missing, **rest)
    assert_same(judge_on(several, criterion, CPU), [judge(m, criterion) for m in several])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_reports_the_same(name, device):
    """Filters, limits and readings that need no references go the same way, on every device of this machine."""
    several = list(random_problems())
    assert_same(judge_on(several, PRESETS[name], device), [judge(m, PRESETS[name]) for m in several])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("statistic", [*OF_PERCENTILES, *OF_TIMES])
def test_every_statistic_reports_the_same(statistic, device):
    """The sixteen statistics that are scored by numpy get their counts from the device."""
    several, criterion = list(random_problems(4)), Criterion(tau="40", statistic=statistic)
    assert_same(judge_on(several, criterion, device), [judge(m, criterion) for m in several])


def test_counts_are_those_of_the_order():
    """How many are smaller and how many smaller or equal, with ties: [1, 3, 3, 7] against 0, 3, 8."""
    order = Order.of(np.array([[3], [1], [7], [3]]))
    mine = np.array([[0], [3], [8]])
    less, upto = counts(order.rising, mine, find_device(CPU))
    assert less.ravel().tolist() == [0, 1, 4]
    assert upto.ravel().tolist() == [0, 3, 4]
    assert all(np.array_equal(a, b) for a, b in zip((less, upto), order.counts(mine), strict=True))


@pytest.mark.parametrize("reading", ["leaderboard", "score"])
@pytest.mark.parametrize("missing", ["undecided", "skip"])
@pytest.mark.parametrize("paid", ["collapsed-binary", "additive"])
def test_p_tau_of_what_a_device_holds_is_the_estimate(reading, missing, paid):
    """One upload, many taus: the programs that pass are those of the verdicts, p_tau is pass@1 of `estimate`."""
    several = list(random_problems(6))
    criterion = Criterion(reading=reading, missing=missing, timeouts="tolerated", correctness="original", reward=paid)
    held = hold(several, criterion, CPU)
    decided = 0
    for tau in ("100", "60", "35.5", "10"):
        at_tau = dataclasses.replace(criterion, tau=tau)
        verdicts, answer = [judge(m, at_tau) for m in several], held.resident.evaluate(at_tau)
        by_model = {estimated.model: estimated for estimated in estimate(verdicts, several, 1)}
        assert list(held.models) == sorted(by_model)
        assert answer.passed.sum(dim=0).tolist() == [by_model[model].passed for model in held.models]
        assert answer.p_tau.tolist() == pytest.approx([by_model[model].value for model in held.models], rel=1e-12)
        decided += int(answer.passed.sum())
    assert decided > 10


def test_a_problem_that_left_the_environment_counts_for_nobody():
    """A filter that keeps no test of one problem: p_tau is the mean over the other, as the estimate says."""
    slow, quick = measured([[9], [8]], reference=[0, 1]), measured([[1], [2]], reference=[0, 1], problem="quick")
    criterion = Criterion(tau="50", keep_ms=1)
    slow = dataclasses.replace(slow, wall_ns=slow.wall_ns * 10**6, cpu_ns=slow.cpu_ns * 10**6)
    held, verdicts = hold([slow, quick], criterion, CPU), [judge(m, criterion) for m in (slow, quick)]
    assert [v.excluded for v in verdicts] == [False, True]
    answer = held.resident.evaluate(criterion)
    assert answer.passed.tolist() == [[1], [0]]
    assert answer.p_tau.tolist() == [0.5] == [estimated.value for estimated in estimate(verdicts, [slow, quick], 1)]


class Counted(TorchFunctionMode):
    """Notes what torch is told to do."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("reading", ["leaderboard", "score"])
def test_no_step_goes_problem_by_problem(reading):
    """Two problems and twelve take the very same steps, none of which reads a value back and so waits for a GPU."""
    calls = []
    for count in (2, 12):
        held = hold([measured([[1], [2], [3]], reference=[1, 2], problem=f"q{i}") for i in range(count)], HALF, CPU)
        with Counted() as counted:
            held.resident.evaluate(dataclasses.replace(HALF, reading=reading))
        calls.append(counted.calls)
    assert calls[0] == calls[1]
    assert 30 < len(calls[0]) < 200
    assert not {"item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__", "nonzero"} & set(calls[0])


def test_without_a_gpu_cuda_reports_what_to_do(monkeypatch):
    """One line: what, where, what next."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ReplayError, match="finds no GPU on this machine; use 'cpu', or run where a GPU"):
        judge_on([], Criterion(), "cuda")


@pytest.mark.parametrize("criterion", [Criterion(statistic="median"), Criterion(reading="zero")])
def test_a_device_refuses_to_hold_what_it_does_not_score(criterion):
    """Such questions are judged by `judge_on`, which scores them with numpy."""
    with pytest.raises(ReplayError, match="percentiles alone"):
        hold(list(random_problems(2)), criterion, CPU)
    with pytest.raises(ReplayError, match="not scored on a device"):
        hold(list(random_problems(2)), Criterion(), CPU).resident.evaluate(Criterion(statistic="median"))
