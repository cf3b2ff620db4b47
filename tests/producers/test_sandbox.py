"""What every isolation must do: each way in which a program can end has one defined outcome."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lapledger.ledger.errors import Fault, UserError
from lapledger.producers.sandbox.limits import MIB, Execution, Limits, Sandbox
from lapledger.producers.sandbox.selection import open_sandbox

LONG_NS, SHORT_NS = 20_000_000_000, 400_000_000
Run = Callable[..., Execution]


@pytest.fixture(scope="module", params=["bubblewrap", "plain"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    shared = Path("/usr/bin/python3") if request.param == "plain" and os.geteuid() == 0 else None
    try:
        return open_sandbox(isolation=request.param, interpreter=shared)
    except UserError as error:
        pytest.skip(f"{request.param} is refused by this machine, as its users are told: {error}")


@pytest.fixture
def run(sandbox: Sandbox, tmp_path: Path) -> Run:
    def run(source: str | bytes, stdin: bytes = b"", **limits: Any) -> Execution:
        (tmp_path / "stdin").write_bytes(stdin)
        text = source if isinstance(source, bytes) else source.encode()
        bounds = Limits(**{"wall_ns": LONG_NS, "output_bytes": MIB, "file_bytes": MIB} | limits)
        return sandbox.run(text, tmp_path / "stdin", output=tmp_path / "stdout", limits=bounds, slot=7)

    return run


def test_a_program_reads_its_input_and_its_output_is_kept(run: Run, tmp_path: Path) -> None:
    """The output file holds what was printed, and every figure of the run is filled in."""
    result = run("a, b = map(int, input().split())\nprint(a + b)", b"19 23\n")
    assert (tmp_path / "stdout").read_bytes() == b"42\n"
    assert (result.outcome, result.exit_code, result.signal, result.cut) == ("ok", 0, None, "")
    assert (result.output_bytes, result.stderr_tail, result.fault) == (3, "", "")
    assert result.user_ns + result.system_ns > 0
    assert 0 < result.wall_ns < LONG_NS
    assert MIB < result.peak_memory_bytes < 1024 * MIB  # no interpreter fits in 1 MiB


def test_an_empty_program_and_one_that_leaves_at_once_end_well(run: Run, tmp_path: Path) -> None:
    """No output is an output; judging it is not the sandbox's business."""
    for source in ("", "import os; os._exit(0)"):
        result = run(source)
        assert (result.outcome, result.output_bytes) == ("ok", 0)
        assert (tmp_path / "stdout").read_bytes() == b""


@pytest.mark.parametrize(
    ("source", "exit_code", "signal"),
    [
        ("exit(3)", 3, None),
        ("raise ValueError", 1, None),
        ("if:", 1, None),
        ("import os; os.kill(os.getpid(), 9)", None, 9),
        ("import os; os.kill(0, 9)", None, 9),  # its own process group, and no one else's
        ("import os; os.kill(os.getpid(), 24)", None, 24),  # SIGXCPU without having used the time
        ("import os; os.kill(os.getpid(), 11)", None, 11),
    ],
)
def test_a_failing_program_is_a_run_time_error(run: Run, source: str, exit_code: int | None, signal: int) -> None:
    """A program cannot pass a failure off as a limit or as a fault of the sandbox."""
    result = run(source)
    assert (result.outcome, result.exit_code, result.signal, result.cut) == ("run_time_error", exit_code, signal, "")


def test_bytes_that_python_refuses_are_the_programs_error_and_carriage_returns_are_fine(run: Run) -> None:
    """Bytes that are no UTF-8 fail in Python itself; line ends of another system do not."""
    assert run(b"print(1)\n# \xff").outcome == "run_time_error"
    assert run(b"x = 1\r\nif x:\r\n    print(x)\r\n").outcome == "ok"


@pytest.mark.parametrize(
    "source",
    [
        "import time; time.sleep(1000)",
        "while True: pass",
        "import signal\nfor s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        "import os, signal, time\nif os.fork() == 0: os.setsid()\ntime.sleep(1000)",
    ],
)
def test_what_does_not_end_is_killed_at_the_wall_limit(run: Run, source: str) -> None:
    """The wall time of a killed program is at least its limit: it is censored there."""
    result = run(source, wall_ns=SHORT_NS)
    assert (result.outcome, result.cut, result.signal, result.exit_code) == ("time_limit", "wall", 9, None)
    assert result.wall_ns >= SHORT_NS


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_is_cut_at_the_limit(run: Run, tmp_path: Path, stream: str) -> None:
    """Standard output and standard error are capped alike; the kept file ends at the limit."""
    result = run(f"import sys\nwhile True: sys.{stream}.write('x' * 65536)", output_bytes=MIB)
    assert (result.outcome, result.cut) == ("output_limit", "output")
    assert (tmp_path / "stdout").stat().st_size == (MIB if stream == "stdout" else 0)


def test_output_that_just_fits_is_accepted(run: Run) -> None:
    """The limit itself is still allowed, one byte more is not."""
    assert run("print('x' * 999)", output_bytes=1000).outcome == "ok"
    assert run("print('x' * 1000)", output_bytes=1000).outcome == "output_limit"


def test_a_program_that_takes_too_much_memory_hits_the_memory_limit(run: Run) -> None:
    """An uncaught MemoryError is the limit's work; a caught one is the program's own affair."""
    result = run("x = bytearray(1 << 30)", memory_bytes=256 * MIB)
    assert (result.outcome, result.cut, result.exit_code) == ("memory_limit", "memory", 1)
    assert run("try: x = bytearray(1 << 30)\nexcept MemoryError: print(1)", memory_bytes=256 * MIB).outcome == "ok"


def test_standard_error_is_kept_short_and_safe_to_print(run: Run) -> None:
    """No escape sequence of a program reaches a person's terminal."""
    result = run("import sys; sys.stderr.write('y' * 5000 + '\\x1b[31m\\u202e\\x07 end\\n'); exit(1)")
    assert len(result.stderr_tail) == 2000
    assert result.stderr_tail.endswith("y\ufffd[31m\ufffd\ufffd end\n")


def test_standard_input_can_be_read_again_from_its_start(run: Run, tmp_path: Path) -> None:
    """Standard input is a file of its own, as on a judge."""
    run("import sys; a = sys.stdin.read(); sys.stdin.seek(0); print(a == sys.stdin.read(), a)", b"7")
    assert (tmp_path / "stdout").read_bytes() == b"True 7\n"


def test_a_program_cannot_write_the_report(run: Run) -> None:
    """Whatever descriptor it writes to or closes, the report stays the kernel's."""
    forge = 'import os\nfor fd in range(3, 64):\n  try: os.write(fd, b\'{"exit_code": 0, "wall_ns": 1}\\n\')\n'
    assert run(forge + "  except OSError: pass\nos._exit(5)").exit_code == 5
    assert run("import os\nos.closerange(0, 64)\nos._exit(6)").exit_code == 6


def test_nothing_of_a_program_outlives_it(run: Run) -> None:
    """A process that detached itself, still holding standard output, ends with its program."""
    mark = uuid.uuid4().hex
    command = f"os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])"
    result = run(
        f"import os, sys\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: {command}\n  os._exit(0)\nos.wait()"
    )
    assert result.outcome == "ok"
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if mark.encode() in command]


WORKER = """
import os, time
told, tell = os.pipe()
if os.fork() == 0:
    DETACH
    held = b"x" * (200 << 20)
    while time.process_time() < 0.3: pass
    os.write(tell, b"42")
    while True: time.sleep(1)
print(os.read(told, 9).decode())
"""


@pytest.mark.parametrize("detach", ["pass", "os.setsid()", "if os.fork(): os._exit(0)"])
def test_what_a_forgotten_child_used_is_counted(run: Run, tmp_path: Path, detach: str) -> None:
    """The CPU time is that of all processes and the peak that of the largest, also of those never waited for."""
    result = run(WORKER.replace("DETACH", detach))
    assert (result.outcome, (tmp_path / "stdout").read_bytes()) == ("ok", b"42\n")
    assert result.user_ns + result.system_ns >= 300_000_000
    assert result.peak_memory_bytes >= 200 * MIB


def test_processes_that_a_program_waits_for_are_counted_too(run: Run) -> None:
    """What a child used comes with its parent's figures; by its own clock it used 0.2 s."""
    child = "import time\nwhile time.process_time() < 0.2: pass"
    result = run(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)")
    assert result.outcome == "ok", result
    assert result.user_ns + result.system_ns >= 200_000_000


def test_each_run_has_an_output_file_of_its_own(run: Run, tmp_path: Path) -> None:
    """What a program hangs on its output file, such as an attribute, is gone with the file when the next run starts."""
    run("print(1)")
    with (tmp_path / "stdout").open() as former:
        run("print(2)")
        assert os.fstat(former.fileno()).st_nlink == 0
        assert (former.read(), (tmp_path / "stdout").read_text()) == ("1\n", "2\n")


def test_the_environment_is_empty_and_hashing_is_the_same_every_time(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the worker's environment is seen, and sets iterate alike in every run."""
    monkeypatch.setenv("A_SECRET", "x")
    seen = set()
    for _ in range(2):
        run("import os; print(hash('a'), 'A_SECRET' in os.environ, os.environ['LANG'], 'HOME' in os.environ)")
        seen.add((tmp_path / "stdout").read_text())
    assert len(seen) == 1
    assert seen.pop().split()[1:] == ["False", "C.UTF-8", "False"]


def test_a_program_may_use_exit_but_not_the_workers_packages(run: Run) -> None:
    """Programs run under the base interpreter: `site` is there, the virtual environment is not."""
    assert run("try: import lapledger\nexcept ImportError: exit(0)\nexit(1)").exit_code == 0


def test_a_program_given_as_a_file_runs_too(sandbox: Sandbox, tmp_path: Path) -> None:
    """A source that only we may read is still readable inside."""
    (tmp_path / "program.py").write_text("print(input())")
    (tmp_path / "program.py").chmod(0o600)
    (tmp_path / "stdin").write_text("héllo")
    output = tmp_path / "stdout"
    result = sandbox.run(tmp_path / "program.py", tmp_path / "stdin", output=output, limits=Limits(LONG_NS))
    assert (result.outcome, output.read_text()) == ("ok", "héllo\n")


@pytest.mark.parametrize("missing", ["program.py", "stdin", "folder/stdout"])
def test_our_own_missing_files_are_our_fault(sandbox: Sandbox, tmp_path: Path, missing: str) -> None:
    """A lost blob or folder is never charged to the program."""
    for name in {"program.py", "stdin"} - {missing}:
        (tmp_path / name).touch()
    output = tmp_path / ("folder/stdout" if "folder" in missing else "stdout")
    with pytest.raises(Fault, match=missing.rpartition("/")[2]):
        sandbox.run(tmp_path / "program.py", tmp_path / "stdin", output=output, limits=Limits(LONG_NS))


def test_a_disk_without_room_for_the_output_is_our_fault(sandbox: Sandbox, tmp_path: Path) -> None:
    """The program must not meet the disk's end before its own limit."""
    (tmp_path / "stdin").touch()
    disk = os.statvfs(tmp_path)
    limits = Limits(LONG_NS, output_bytes=2 * disk.f_blocks * disk.f_frsize)
    with pytest.raises(Fault, match="room"):
        sandbox.run(b"", tmp_path / "stdin", output=tmp_path / "stdout", limits=limits)
