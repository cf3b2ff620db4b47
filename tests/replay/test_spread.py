"""Spreading over a Ray cluster: the same results, in the same order, whatever the number of processes.

The cluster is real: two processes on this machine, started for this file and gone after it.
"""

import dataclasses
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_equal

from lapledger.cli.engine_options import connected, private_settings
from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.devices.questions import one_by_one
from lapledger.replay.devices.spread import JudgeQuestion, cluster, judge_by, spread
from lapledger.replay.engines import Engine
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome
from lapledger.replay.studies.simulator import simulate
from lapledger.replay.studies.sweeps import Axes, sweep
from tests.replay.builders import measured
from tests.support.lap import process, well
from tests.support.screen_ledgers import MODELS, REFERENCES, make_campaign

HALF = Criterion(tau="50", reading="score", timeouts="tolerated")


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A question that draws random numbers: the mean duration of a sample of programs with replacement."""

    size: int

    def __call__(self, m, random):
        return float(m.wall_ns[random.integers(len(m.programs), size=self.size)].mean())


@dataclasses.dataclass(frozen=True)
class Refused:
    """A question that two problems refuse."""

    def __call__(self, m, random):
        if m.problem in ("q3", "q7"):
            raise ReplayError(f"problem {m.problem}: no")
        return m.problem


class Broken(Refused):
    """A question that is wrong itself."""

    def __call__(self, m, random):
        return {}[m.problem]


@pytest.fixture(scope="module")
def several():
    """Eleven problems of different sizes: shares of more than one problem, and a last one that is not full."""
    random = np.random.default_rng(1)
    answers = []
    for number in range(11):
        shape = 5 + number, 3
        outcome = random.choice(
            np.array([Outcome.OK, Outcome.TIME_LIMIT, Outcome.MISSING]), size=shape, p=[0.9, 0.07, 0.03]
        )
        wall, pool = random.integers(1, 30, size=shape), np.arange(0, shape[0], 2)
        answers.append(measured(wall, reference=pool, outcome=outcome, limit=25, problem=f"q{number}"))
    return answers


@pytest.fixture(scope="module")
def ray() -> Iterator[object]:
    """A cluster of two processes that listens on the loopback alone."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # the questions of this file
        with connected(workers=2):
            import ray

            yield ray
    assert not ray.is_initialized()


def assert_same(ours, theirs):
    """Every field of two verdicts is equal, and belongs to whoever asked."""
    assert [v.problem for v in ours] == [v.problem for v in theirs]
    for a, b in zip(ours, theirs, strict=True):
        for name in (*(field.name for field in dataclasses.fields(a)), "k_lo", "k_hi", "reason"):
            if name == "details_from":
                continue
            x, y = getattr(a, name), getattr(b, name)
            assert np.array_equal(x, y), name
            assert not isinstance(x, np.ndarray) or x.flags.writeable


@pytest.mark.parametrize("workers", [1, 2, None])
def test_verdicts_are_the_same_whatever_the_number_of_processes(ray, several, workers):
    """One process, two, or all there are: the verdicts of one after the other, in the order of the problems."""
    assert_same(judge_by("ray", several, criterion=HALF, workers=workers), [judge(m, HALF) for m in several])


def test_random_numbers_belong_to_the_problem(ray, several):
    """What is drawn depends on seed and problem id: not on the engine, the order, or what was drawn before."""
    here = spread(several, Drawn(20), seed=5)
    assert spread(several, Drawn(20), engine="ray", workers=2, seed=5) == here
    assert spread(several[::-1], Drawn(20), engine="ray", workers=1, seed=5) == here[::-1]
    assert spread(several[4:5], Drawn(20), seed=5) == here[4:5]
    assert spread(several, Drawn(20), seed=6) != here


@pytest.mark.parametrize("workers", [1, 2])
def test_a_simulation_is_the_same_whatever_the_number_of_processes(ray, several, workers):
    """Every draw, and every sum over problems in their order: the curves and figures of this process, to the bit."""
    criteria = {name: PRESETS[name] for name in ("top-50", "rlvr", "multitask", "relative-p50")}
    humans = [dataclasses.replace(m, models=("human",) * len(m.programs)) for m in several]
    here = simulate(humans, criteria, runner=partial(one_by_one, seed=5))
    there = simulate(humans, criteria, runner=partial(spread, engine="ray", workers=workers, seed=5))
    assert any(local.problems for local in here)
    for local, remote in zip(here, there, strict=True):
        for field in dataclasses.fields(local):
            assert_equal(getattr(local, field.name), getattr(remote, field.name))


@pytest.mark.parametrize("name", ["top-30", "relative-p50", "pre-0.1s"])
@pytest.mark.parametrize("compiled_from", [0, 10**12])
def test_a_sweep_is_the_same_problem_by_problem(ray, several, name, compiled_from, monkeypatch):
    """In machine code and in numpy, where a filter takes problems away and where none does: points with shares."""
    monkeypatch.setattr("lapledger.replay.engines.MACHINE_CODE_FROM", compiled_from)
    axes = Axes((100, 50, 20), timeouts_ns=(None, 1_000_000), alphas=(0.5, 1.0), betas_ns=(0, 3))
    here = sweep(several, PRESETS[name], axes, with_shares=True)
    there = sweep(several, PRESETS[name], axes, with_shares=True, engine=Engine("ray", workers=2))
    assert_equal([dataclasses.astuple(local) for local in there], [dataclasses.astuple(local) for local in here])


def test_the_first_refusal_is_reported_as_here(ray, several):
    """The same one line, of the first problem that refuses."""
    for engine in ("local", "ray"):
        with pytest.raises(ReplayError, match=r"^problem q3: no$"):
            spread(several, Refused(), engine=engine)


def test_a_fault_in_a_process_is_one_line(ray, several):
    """What went wrong, where, and what to do."""
    with pytest.raises(ReplayError, match=r"^a process of the Ray cluster failed: KeyError: 'q0'; try engine 'auto'$"):
        spread(several, Broken(), engine="ray")


def test_a_process_of_another_release_is_refused(ray, several, monkeypatch):
    """Verdicts of another release may differ, so they are not mixed."""
    monkeypatch.setattr("lapledger.replay.devices.spread.version", lambda _: "9.9.9")
    with pytest.raises(ReplayError, match=r"this one 9\.9\.9: install the same release on every machine"):
        spread(several, JudgeQuestion(HALF), engine="ray")


def test_the_cluster_is_this_machines_own(ray):
    """Its node is the loopback, so nothing of it can be reached from another machine."""
    assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}
    (node,) = ray.nodes()
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1", "::1"}
    for address in addresses:
        with socket.socket() as probe:
            assert probe.connect_ex((address, node["NodeManagerPort"])) != 0


def test_a_command_uses_a_cluster_that_runs(ray, tmp_path):
    """`--cluster` joins these two processes from a process of its own; the answer is the one without them."""
    make_campaign(tmp_path / "lap", (*REFERENCES, *MODELS))
    arguments = "replay", "--tau", "50", "--ledger", tmp_path / "lap", "--json"
    address = ray.get_runtime_context().gcs_address
    done = process(*arguments, "--engine", "ray", "--cluster", address, **private_settings())
    assert (done.code, done.err) == (0, "")
    assert done.json == well(*arguments).json
    assert ray.is_initialized()


class SlowToStart:
    """Ray on a machine that is too busy for it, some times over."""

    def __init__(self, times, arguments="The current node timed out during startup."):
        self.times, self.arguments, self.attempts = times, arguments, 0

    def init(self, **options):
        self.attempts += 1
        if self.attempts <= self.times:
            raise Exception(self.arguments)  # noqa: TRY002  (as ray does)

    def shutdown(self):
        pass


@pytest.mark.parametrize(("times", "attempts"), [(0, 1), (3, 4)])
def test_a_start_that_takes_too_long_is_attempted_again(times, attempts, monkeypatch):
    """Ray gives itself half a minute, which a busy machine may not have."""
    slow = SlowToStart(times)
    monkeypatch.setattr("lapledger.replay.devices.spread._ray", lambda: slow)
    with cluster():
        assert slow.attempts == attempts


@pytest.mark.parametrize(
    ("slow", "address", "attempts"),
    [(SlowToStart(9), None, 4), (SlowToStart(9), "here:1", 1), (SlowToStart(9, "path too long\nof a socket"), None, 1)],
)
def test_a_cluster_that_does_not_start_is_one_line(slow, address, attempts, monkeypatch):
    """After four starts, or one where trying again would not help."""
    monkeypatch.setattr("lapledger.replay.devices.spread._ray", lambda: slow)
    message = (
        f"^the Ray cluster '{address or 'local'}' cannot be used: Exception: {slow.arguments.splitlines()[0]}; see `ray"
    )
    with pytest.raises(ReplayError, match=message), cluster(address=address):
        pass
    assert slow.attempts == attempts


def test_no_problem_is_no_result(ray):
    """An empty list of problems gives an empty list."""
    assert spread([], JudgeQuestion(HALF), engine="ray") == spread([], JudgeQuestion(HALF)) == []


def test_an_unknown_engine_is_refused(several):
    """The message names those that there are."""
    with pytest.raises(ReplayError, match="engine 'threads' is not known; use one of local, ray"):
        spread(several, JudgeQuestion(HALF), engine="threads")
