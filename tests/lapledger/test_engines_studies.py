"""`--engine ray` and `--device` on the commands that study a campaign: the answer of numpy here, to the last letter.

The cluster is real: two processes on this machine, started for this file and gone after it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapledger.cli.engine_options import connected, private_settings
from tests.support.lap import lap, process, well
from tests.support.many_ledgers import make_many

CURVE = ("curve", "--checkpoint", "run-{step}", "--tiers", "none", "--tau", "100,50,20")
MATRIX = ("matrix", "--run", "run-*", "--run", "base")
COMPARE = ("compare", "base", "run-1k", "--tiers", "none", "--resamples", "200")
SIMULATE = ("simulate", "--seed", "5")
SWEEP = ("sweep", "--tau", "100,50,20", "--optimization-limit", "none,50ms", "--alpha", "0.5,1,2", "--beta", "0ms,20ms")
ROBUSTNESS = ("robustness", "--baseline", "base", "--alpha", "0.5,1", "--beta", "-20ms,0ms")
RELATIVE = ("--criterion", "relative-p50")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three problems of twenty-four programs by four models, one of them killed."""
    root = tmp_path_factory.mktemp("studied") / "lap"
    make_many(root, killed=True)
    return root


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where two processes listen, on the loopback alone."""
    with connected(workers=2):
        import ray

        yield ray.get_runtime_context().gcs_address


@pytest.mark.parametrize(
    "args",
    [SIMULATE, SWEEP, (*SWEEP, *RELATIVE), ROBUSTNESS, MATRIX, CURVE, COMPARE],
    ids=lambda args: f"{args[0]}{'-relative' if args[-1] == 'relative-p50' else ''}",
)
def test_processes_answer_as_one_does(ledger: Path, address: str, args: tuple[str, ...]) -> None:
    """Two processes, which the command joins from a process of its own; draws, intervals and bounds among it."""
    wanted = (*args, "--ledger", ledger, "--json")
    done = process(*wanted, "--engine", "ray", "--cluster", address, **private_settings())
    assert (done.code, done.err) == (0, "")
    assert done.out == well(*wanted).out


def test_a_command_starts_processes_of_its_own(ledger: Path) -> None:
    """One process alone, started for one command, pays the same draws as none."""
    wanted = (*SIMULATE, "--criterion", "top-50", "--criterion", "multitask", "--ledger", ledger, "--json")
    done = process(*wanted, "--engine", "ray", "--workers", "1")
    assert (done.code, done.err) == (0, "starting the processes of a Ray cluster on this machine\n")
    assert done.out == well(*wanted).out


@pytest.mark.parametrize(
    "args",
    [SIMULATE, MATRIX, CURVE, (*CURVE, *RELATIVE), COMPARE, (*COMPARE, "--criterion", "per-test-top-30")],
    ids=lambda args: f"{args[0]}-{args[-1]}",
)
def test_torch_answers_as_numpy_does(ledger: Path, args: tuple[str, ...]) -> None:
    """Every count, draw, interval and bound, whatever the criteria."""
    wanted = (*args, "--ledger", ledger, "--json")
    assert well(*wanted, "--device", "cpu").out == well(*wanted).out


@pytest.mark.parametrize("args", [SWEEP, ROBUSTNESS], ids=lambda args: args[0])
def test_a_grid_on_a_device_is_refused(ledger: Path, args: tuple[str, ...]) -> None:
    """Rather than answered without it: exit code 2 and one line. Help offers the cluster alone."""
    offered = [flag for flag in ("--device", "--engine") if f"  {flag} " in well(args[0], "--help").out]
    assert offered == ["--engine"]
    for flags in (("--device", "cpu"), ("--engine", "torch")):
        done = lap(*args, "--ledger", ledger, *flags)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            f"lap: {' '.join(flags)}: this command computes in machine code or with numpy; leave it out, or spread the"
            " problems with --engine ray\n"
        )
