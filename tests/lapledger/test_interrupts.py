"""Ctrl-C: one press ends a command with 130 and one line, ten fast ones too, and nothing is left half-written."""

import itertools
import os
import signal
import subprocess
from pathlib import Path

import pytest

from lapledger.workflows.interrupts import Interrupts
from lapledger.workflows.session import stopping
from tests.support.lap import LAP, environment, well
from tests.support.screen_ledgers import MODELS, REFERENCES, make_campaign


def test_a_burst_is_one_interrupt() -> None:
    """Ten presses within a second, each 0.1 s after the last, then one after a pause of a second: two interrupts."""
    times = itertools.chain((number / 10 for number in range(10)), [2.0])
    handler = Interrupts(clock=lambda: next(times))
    assert [handler.is_new() for _ in range(11)] == [True, *[False] * 9, True]


def test_a_burst_stops_a_worker_gracefully() -> None:
    """The first press sets the event; the others of the burst raise nothing."""
    with stopping() as stop:
        for _ in range(10):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.is_set()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with one campaign."""
    home = tmp_path_factory.mktemp("interrupts")
    make_campaign(home / ".lap", [*REFERENCES, *MODELS])
    return home


COMMANDS = {
    "replay": ("replay", "--tau", "50", "--plot", "{out}.png"),
    "sweep": ("sweep", "--tau", "50,30", "--alpha", "0.8:1.2:0.1", "--out", "{out}.csv"),
    "export": ("export", "bundle", "{out}.zip", "--criterion", "top-50"),
    "backup": ("ledger", "backup", "{out}"),
    "verify": ("verify",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_ten_fast_presses_end_a_command_cleanly(home: Path, tmp_path: Path, name: str) -> None:
    """Whenever they come: 130 with one line, or the command was quicker; what it wrote is complete or not there."""
    args = [arg.format(out=tmp_path / "out") for arg in COMMANDS[name]]
    process = subprocess.Popen(
        [LAP, *args], cwd=home, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    threads = Path(f"/proc/{process.pid}/task")
    while process.poll() is None and len(list(threads.iterdir())) < 2:  # numpy's threads: the command is under way
        pass
    for _ in range(10):
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode in (0, 130)
    assert "Traceback" not in err
    if process.returncode == 130:
        assert err.strip().splitlines()[-1] == "lap: interrupted; rerun the same command to resume"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == [], out
    assert well("replay", "--tau", "50", "--json", cwd=home).json["criteria"][0]["verdicts"]
