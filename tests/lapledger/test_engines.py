"""`lap replay --device` and `--engine`: whoever judges, the answer is the same to the last letter."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.support.lap import lap, process, well
from tests.support.many_ledgers import make_many
from tests.support.screen_ledgers import MODELS, REFERENCES, make_campaign

REQUESTED = ("--tau", "100", "--tau", "50", "--tau", "20", "--flips", "--json")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three problems of twenty-four programs by four models, one of them killed."""
    root = tmp_path_factory.mktemp("engines") / "lap"
    make_many(root, killed=True)
    return root


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a name that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as name:
        yield Path(name)


@pytest.mark.parametrize("criterion", ["correct", "per-test-top-30", "raw-duration", "ranked-worst-p50"])
def test_torch_answers_as_numpy_does(ledger: Path, criterion: str) -> None:
    """Every verdict, rank, bound and estimate of several taus."""
    args = "replay", "--criterion", criterion, "--ledger", ledger, *REQUESTED
    assert well(*args, "--device", "cpu").json == well(*args).json


def test_torch_gives_the_known_answer(tmp_path: Path) -> None:
    """Two of four references are faster than `middle`, and two of their own scores smaller than its 1/2: q = 4/8."""
    make_campaign(tmp_path / "lap", (*REFERENCES, *MODELS))
    (result,) = well("replay", "--tau", "50", "--device", "cpu", "--ledger", tmp_path / "lap", "--json").json[
        "criteria"
    ]
    (middle,) = [verdict for verdict in result["verdicts"] if "/middle." in verdict["program"]]
    assert (middle["status"], middle["q"]) == ("pass", [4, 4, 8])


def test_processes_answer_as_one_does_and_leave_nothing_behind(ledger: Path, folder: Path) -> None:
    """Two real processes, started once for three taus; no process, file or token of theirs is left after it."""
    args = "replay", "--ledger", ledger, *REQUESTED
    done = process(*args, "--engine", "ray", "--workers", "2", TMPDIR=str(folder), HOME=str(folder))
    assert (done.code, done.err) == (0, "starting the processes of a Ray cluster on this machine\n")
    assert done.json == well(*args).json
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if f"{folder}/".encode() in command]
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_without_a_gpu_is_one_line(ledger: Path) -> None:
    """Exit code 2: what, where, and what to do."""
    done = lap("replay", "--device", "cuda", "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("lap: device 'cuda': torch ")
    assert done.err.endswith(
        "finds no GPU on this machine; use 'cpu', or run where a GPU and its driver are (`nvidia-smi` lists them)\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--device", "cpu", "--engine", "ray"), "exclude each other"),
        (("--workers", "2"), "--workers is about the processes of a cluster; add --engine ray"),
        (("--cluster", "here:1", "--device", "cpu"), "--cluster is about the processes of a cluster"),
        (("--engine", "ray", "--cluster", "here:1", "--workers", "2"), "leave it out beside --cluster"),
        (("--engine", "threads"), "'threads' is not one of 'auto', 'numpy', 'numba', 'torch', 'ray'"),
        (("--device", "tpu"), "'tpu' is not one of 'cpu', 'cuda'"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(ledger: Path, flags: tuple[str, ...], message: str) -> None:
    """Exit code 2, before anything is read or started."""
    done = lap("replay", *flags, "--ledger", ledger)
    assert (done.code, done.out, message in done.err) == (2, "", True), done.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--device", "cpu"), "lap: --device cpu needs the package torch: pip install 'lapledger[models]'\n"),
        (("--engine", "ray"), "lap: --engine ray needs the package ray: pip install 'lapledger[ray]'\n"),
    ],
)
def test_a_package_that_is_not_installed_is_named(
    ledger: Path, flags: tuple[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the extra that brings it."""
    monkeypatch.setattr("lapledger.cli.engine_options.find_spec", lambda _: None)
    done = lap("replay", *flags, "--ledger", ledger)
    assert (done.code, done.err) == (2, message)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "127.0.0.1:99999999"])
def test_a_cluster_that_is_not_there_is_one_line(ledger: Path, address: str) -> None:
    """Nothing listens at that address of this machine, or it is none: exit code 2, and what to give instead."""
    done = lap("replay", "--engine", "ray", "--cluster", address, "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"lap: --cluster {address}: ")
    assert done.err.endswith("give HOST:PORT of its head, as `ray start --head` printed it\n")
