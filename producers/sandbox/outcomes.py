"""What a run's figures mean: the shim's report and the sizes of what was written become an Execution.

Pure functions: no clock, no file, no process. A failure of ours is "sandbox_fault" and never the program's.
"""

import json
import re
import signal
from dataclasses import dataclass
from typing import Any

from lapledger.producers.sandbox.limits import SECOND_NS, Cut, Execution, Limits, Outcome

TAIL_CHARACTERS = 2_000
_MEMORY_ERROR = re.compile(r"^[\w.]*MemoryError\b", re.MULTILINE)
_USAGE = (
    *("wall_ns", "user_ns", "system_ns", "peak_memory_bytes"),
    *("voluntary_switches", "forced_switches"),
)
_FIGURES = {"exit_code", "signal", "killed", "tasks", *_USAGE}
_OUT_OF_MEMORY_SIGNALS = (signal.SIGSEGV, signal.SIGABRT)


@dataclass(frozen=True, slots=True)
class Written:
    """What the program wrote: bytes on standard output, bytes on standard error, and the end of the latter."""

    output_bytes: int
    error_bytes: int
    error_tail: bytes


def parse_report(line: bytes) -> dict[str, Any]:
    """The shim's figures, or {"fault": text} where there is no whole report."""
    try:
        report = json.loads(line)
    except ValueError:
        return {"fault": "the sandbox ended without a report"}
    complete = isinstance(report, dict) and ("fault" in report or report.keys() >= _FIGURES)
    return report if complete else {"fault": "the sandbox's report is incomplete"}


def execution(report: dict[str, Any], written: Written, limits: Limits, *, machine_out_of_memory: bool) -> Execution:
    """The Execution that a report stands for; durations in nanoseconds.

    `machine_out_of_memory` says that the kernel killed some process for want of memory meanwhile: an unexplained
    SIGKILL of a small program is then the machine's fault.
    """
    tail = printable_tail(written.error_tail)
    # No program in a sandbox can bring a fault about, or it would escape its judgement:
    # - no report, a broken one, or a shim that outlives its limit: the report's pipe is closed to the program; the shim
    #   is the first process of its namespace, which no signal from inside reaches, and either another user's or guarded
    #   by the filter, so its limits and priority stay. One signal ends all that run there, however many and stopped.
    # - a fault that the shim tells: before the program starts it is ours; later it only waits, kills and reads a clock.
    # - a machine without memory: see _took_much; how short the machine is, a program cannot see.
    # Only a plain process of the worker's own user can stop its shim, as it can the worker: plain is not a sandbox.
    if "fault" in report:
        text = "; ".join(filter(None, (str(report["fault"]), tail.strip())))
        return Execution("sandbox_fault", fault=" ".join(text.split())[:TAIL_CHARACTERS])
    outcome, cut = _outcome(report, written, limits)
    if outcome == "run_time_error" and report["signal"] == signal.SIGKILL and machine_out_of_memory:
        # Whose fault it was cannot be seen here. A run that may have caused it is marked: it is tried again, and only
        # when that repeats is the program charged (`producers.campaigns.worker`).
        blame: Cut = "memory" if _took_much(report, limits) else ""
        fault = "the machine ran out of memory: use fewer slots or more memory"
        return Execution("sandbox_fault", cut=blame, fault=fault)
    return Execution(
        outcome,
        exit_code=report["exit_code"] if report["exit_code"] >= 0 else None,
        signal=report["signal"] or None,
        cut=cut,
        **{name: report[name] for name in _USAGE},
        output_bytes=written.output_bytes,
        stderr_tail=tail,
    )


def _outcome(report: dict[str, Any], written: Written, limits: Limits) -> tuple[Outcome, Cut]:
    """The first rule that holds: too much output, too much time, too much memory, ended by itself."""
    if max(written.output_bytes, written.error_bytes) > limits.output_bytes:
        return "output_limit", "wall" if report["killed"] else "output"
    if report["killed"]:
        return "time_limit", "wall"
    if _used_up_cpu(report, limits):
        return "time_limit", "cpu"
    if _used_up_memory(report, written, limits):
        return "memory_limit", "memory"
    return ("ok" if report["exit_code"] == 0 else "run_time_error"), ""


def _used_up_cpu(report: dict[str, Any], limits: Limits) -> bool:
    """Whether the kernel ended it for its CPU time; a program that sends itself the signal has not used the time."""
    spent = report["user_ns"] + report["system_ns"]
    return report["signal"] in (signal.SIGXCPU, signal.SIGKILL) and spent >= 0.99 * limits.cpu_seconds * SECOND_NS


def _used_up_memory(report: dict[str, Any], written: Written, limits: Limits) -> bool:
    """Whether it failed for want of memory: an uncaught MemoryError, or a crash with nearly all memory in use."""
    if report["exit_code"] == 1:
        last = written.error_tail.rstrip().rpartition(b"\n")[2].decode(errors="replace")
        return _MEMORY_ERROR.match(last) is not None
    return report["signal"] in _OUT_OF_MEMORY_SIGNALS and report["peak_memory_bytes"] >= 0.9 * limits.memory_bytes


def _took_much(report: dict[str, Any], limits: Limits) -> bool:
    """Whether the run could have held half of the memory that one process may: as many as it had, all at their peak.

    A program cannot exhaust the machine with less, so it cannot pass its own SIGKILL off as the machine's fault.
    """
    held: int = report["peak_memory_bytes"] * min(report["tasks"], limits.processes)
    return held >= limits.memory_bytes / 2


def printable_tail(text: bytes) -> str:
    """The last 2,000 characters, each replaced that a terminal might obey or not show; line feeds and tabs stay."""
    tail = text.decode(errors="replace").replace("\r\n", "\n")[-TAIL_CHARACTERS:]
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in tail)
