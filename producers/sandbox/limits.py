"""The values of the sandbox's boundary: what a program may use, what came of it, and which interpreter ran it.

Plain frozen data. No process is started and no file is read here. All durations are integer nanoseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from lapledger.ledger.errors import UserError

MIB = 1 << 20
SECOND_NS = 1_000_000_000
LEAST_MEMORY_BYTES = 64 * MIB
"""An interpreter does not start with less."""

Isolation = Literal["bubblewrap", "plain"]
Outcome = Literal["ok", "run_time_error", "time_limit", "memory_limit", "output_limit", "sandbox_fault"]
Cut = Literal["", "wall", "cpu", "output", "memory"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use on one test; each value holds for one run.

    `memory_bytes` bounds the address space of each process, `output_bytes` standard output and standard error each,
    `file_bytes` each written file and each of the private `/tmp` and `/dev/shm` as a whole. Raise UserError for a value
    that cannot work.
    """

    wall_ns: int
    memory_bytes: int = 1024 * MIB
    output_bytes: int = 64 * MIB
    file_bytes: int = 64 * MIB
    processes: int = 16
    open_files: int = 64

    def __post_init__(self) -> None:
        least = {"wall_ns": 1, "memory_bytes": LEAST_MEMORY_BYTES, "output_bytes": 1, "file_bytes": 1, "processes": 1}
        for name, low in (least | {"open_files": 8}).items():
            value = getattr(self, name)
            if value < low:
                raise UserError(f"the limit {name} is {value}: give at least {low}")

    @property
    def cpu_seconds(self) -> int:
        """CPU seconds of one process: a backstop that all threads together cannot reach before the wall limit."""
        return (-(-self.wall_ns // SECOND_NS) + 1) * self.processes


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of one program on one test: how it ended and what it used, as the kernel counted it.

    `exit_code` is None after a signal, `signal` is None without one; `cut` says why the run was cut short, "" if it
    was not. A run ends when its last process has. The CPU time and the switches are those of all its processes
    together, the peak memory is that of the largest. `output_bytes` is what was written; the kept file ends at the
    limit. `fault` is set with "sandbox_fault" only, and then no figure says anything about the program.
    """

    outcome: Outcome
    exit_code: int | None = None
    signal: int | None = None
    cut: Cut = ""
    wall_ns: int = 0
    user_ns: int = 0
    system_ns: int = 0
    peak_memory_bytes: int = 0
    voluntary_switches: int = 0
    forced_switches: int = 0
    output_bytes: int = 0
    stderr_tail: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs the programs: its real path, version, the SHA-256 of its binary, and its home folder.

    `packages` are the folders of installed packages. Programs may use the standard library alone, and what a machine
    has installed there must neither help a program nor lengthen its start, so a sandbox covers them where it can.
    """

    path: Path
    version: str
    sha256: str
    prefix: Path
    packages: tuple[Path, ...] = ()

    def shim(self, script: str) -> list[str]:
        """The command that runs the shim: isolated, and without `site`, which would cost milliseconds."""
        return [str(self.path), "-I", "-S", "-B", script]

    def program(self, script: str) -> list[str]:
        """The command that runs a program: as `-I` isolates, but PYTHONHASHSEED is heard; `site` stays for `exit()`."""
        return [str(self.path), "-s", "-P", "-B", script]


class Sandbox(Protocol):
    """Runs programs one at a time a slot; several slots may run side by side in threads."""

    @property
    def isolation(self) -> Isolation:
        """How far a program is kept away from the machine."""

    @property
    def interpreter(self) -> Interpreter:
        """The interpreter that runs the programs."""

    @property
    def warning(self) -> str:
        """One line for a person when the isolation is weaker than it should be, else ""."""

    def run(
        self,
        source: bytes | Path,
        stdin: Path,
        *,
        output: Path,
        limits: Limits,
        slot: int = 0,
        arguments: Sequence[str] = (),
    ) -> Execution:
        """How `source` ended on `stdin` when called with `arguments`; what it printed is in `output`.

        Raises Fault when our own files fail.
        """


ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONINTMAXSTRDIGITS": "0",  # as contest judges do: an answer may be an integer of any length
}
STACK_BYTES = 256 * MIB


def shim_options(limits: Limits, *, report: int, uid: int | None, tasks: int) -> Sequence[str]:
    """The shim's own arguments: `report` is its pipe, `uid` the user to become, `tasks` the kernel's process limit."""
    values = {
        "report": report,
        "uid": -1 if uid is None else uid,
        "wall_ns": limits.wall_ns,
        "cpu": limits.cpu_seconds,
        "memory": limits.memory_bytes,
        "file": max(limits.output_bytes, limits.file_bytes) + 1,
        "tasks": tasks,
        "files": limits.open_files,
        "stack": min(STACK_BYTES, limits.memory_bytes // 8),  # a thread reserves as much: leave room for some
    }
    return [f"{name}={value}" for name, value in values.items()]
