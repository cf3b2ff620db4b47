"""Engines: one rule chooses, all give the same verdicts, and none takes a criterion with a key unknown to it."""

import dataclasses

import numpy as np
import pytest

import lapledger.replay.engines
from lapledger.replay.batches.problem_batches import ProblemBatch, is_common
from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.devices.batches import hold
from lapledger.replay.devices.device import in_torch
from lapledger.replay.devices.device import knows as torch_knows
from lapledger.replay.engines import AUTO, Engine
from lapledger.replay.errors import ReplayError
from lapledger.replay.fields import FIELDS
from lapledger.replay.judging.gates import judge
from lapledger.replay.studies.sweeps import Axes, sweep
from tests.replay.builders import measured

HALF = Criterion(tau="50", reading="score")


@dataclasses.dataclass(frozen=True, slots=True)
class NewerCriterion(Criterion):
    """A criterion of a later release, with a key that no engine of this one knows."""

    outliers: str = "keep"


KEPT, DROPPED = (NewerCriterion(tau="50", reading="score", outliers=text) for text in ("keep", "drop"))


@pytest.fixture(scope="module")
def several():
    """Three problems of five programs on two tests."""
    return [
        measured([[25, 35], [10, 10], [20, 20], [30, 30], [40, shift]], reference=[1, 2, 3, 4], problem=f"q{shift}")
        for shift in (40, 50, 5)
    ]


@pytest.fixture
def never_compiled(monkeypatch):
    """Machine code and torch's ranks fail the test that reaches them."""

    def reached(*_args, **_kwargs):
        raise AssertionError("an engine took a criterion that it does not know")

    monkeypatch.setattr(lapledger.replay.engines, "judge_many", reached)
    monkeypatch.setattr("lapledger.replay.devices.batches.rank_all", reached)
    monkeypatch.setattr("lapledger.replay.devices.batches.counts", reached)
    monkeypatch.setattr(lapledger.replay.engines, "MACHINE_CODE_FROM", 0)


def same(result, expected):
    """Whether two lists of verdicts are equal to the bit."""
    fields = [field.name for field in dataclasses.fields(expected[0]) if field.name != "details_from"]
    for a, b in zip(result, expected, strict=True):
        for name in fields:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    return True


def test_every_key_of_today_is_known_by_name_and_a_new_one_is_not():
    """A key counts as unknown wherever it is set to anything but its default, listed in the table of fields or not."""
    assert HALF.sets_only(FIELDS)
    assert KEPT.sets_only(FIELDS)
    assert not DROPPED.sets_only(FIELDS)
    assert not HALF.sets_only({"tau"})


@pytest.mark.parametrize(("criteria", "compiled"), [(1, False), (3, False), (4, True)])
def test_machine_code_is_chosen_by_runs_times_criteria(several, monkeypatch, criteria, compiled):
    """Three problems of ten runs each: with four criteria there are 120 judgements, which is what counts for sweeps."""
    monkeypatch.setattr(lapledger.replay.engines, "MACHINE_CODE_FROM", 100)
    calls = []
    monkeypatch.setattr(lapledger.replay.engines, "judge_many", lambda problems, _: calls.append(len(problems)) or [])
    AUTO.judge(several, HALF, criteria=criteria)
    assert calls == [3] * compiled


def test_auto_leaves_an_unknown_key_to_numpy(several, never_compiled):
    """However much there is to judge."""
    assert is_common(KEPT)
    assert not is_common(DROPPED)
    assert same(AUTO.judge(several, DROPPED), [judge(m, DROPPED) for m in several])


def test_machine_code_refuses_an_unknown_key(several, never_compiled):
    """In one line; a batch of problems refuses it too."""
    with pytest.raises(ReplayError, match="engine 'numba' does not know this criterion"):
        Engine("numba").judge(several, DROPPED)
    with pytest.raises(ReplayError, match="judge this one by itself"):
        ProblemBatch.of(several, DROPPED).evaluate(DROPPED)


def test_torch_leaves_an_unknown_key_to_numpy(several, never_compiled):
    """Neither ranks nor scores are made on the device, and nothing is kept there."""
    assert torch_knows(KEPT)
    assert (torch_knows(DROPPED), in_torch(DROPPED)) == (False, False)
    assert same(Engine("torch").judge(several, DROPPED), [judge(m, DROPPED) for m in several])
    with pytest.raises(ReplayError, match="a device holds"):
        hold(several, DROPPED, "cpu")


def test_a_sweep_leaves_an_unknown_key_to_numpy(several, monkeypatch):
    """The points of a grid that would be worth machine code."""
    axes = Axes(taus=(100, 50))
    expected = sweep(several, DROPPED, axes)
    monkeypatch.setattr(lapledger.replay.engines, "MACHINE_CODE_FROM", 0)
    assert sweep(several, DROPPED, axes) == expected
    with pytest.raises(ReplayError, match="engine 'numba' does not know"):
        sweep(several, DROPPED, axes, engine=Engine("numba"))


@pytest.mark.parametrize("name", ["numpy", "numba", "torch"])
def test_every_engine_gives_the_same_verdicts(several, name):
    """To the bit, reasons among them, under every preset that the engine knows."""
    for criterion in PRESETS.values():
        if name == "numba" and not is_common(criterion):
            continue
        expected = [judge(m, criterion) for m in several]
        result = Engine(name).judge(several, criterion)
        assert same(result, expected)
        assert [v.reason for v in result] == [v.reason for v in expected]


def test_one_rule_reports_when_machine_code_pays():
    """Runs times criteria, and only for criteria that it knows; a named engine is always obeyed."""
    most = lapledger.replay.engines.MACHINE_CODE_FROM
    assert [AUTO.uses_machine_code(HALF, runs) for runs in (most - 1, most)] == [False, True]
    assert not AUTO.uses_machine_code(Criterion(keep_ms=5), most)
    assert not Engine("numpy").uses_machine_code(HALF, most)
    assert Engine("numba").uses_machine_code(HALF, 1)


@pytest.mark.parametrize(("args", "message"), [(("threads",), "engine 'threads'"), (("torch", "tpu"), "device 'tpu'")])
def test_an_unknown_engine_is_refused(args, message):
    """In one line with the names that are known."""
    with pytest.raises(ReplayError, match=f"{message} is not known; use one of"):
        Engine(*args)


@pytest.mark.parametrize("name", ["numpy", "numba", "torch"])
def test_every_engine_reports_each_problem(several, name):
    """The steps add up to the number of problems, so that a progress bar ends where the work does."""
    steps = []
    Engine(name).judge(several, HALF, steps.append)
    assert sum(steps) == len(several)
