"""Programs as plain processes with limits, for machines that refuse namespaces. Not a sandbox: it says "plain".

The shim still limits, times, kills and sweeps. Where the worker is root and the interpreter is open to all, a
program gets a user of its own; else it can read and stop whatever the worker's user can.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lapledger.ledger.errors import Fault
from lapledger.producers.sandbox.bubblewrap import SHIM
from lapledger.producers.sandbox.launch import Command, launch, read_source
from lapledger.producers.sandbox.limits import Execution, Interpreter, Isolation, Limits, shim_options


@dataclass(frozen=True, slots=True)
class PlainSandbox:
    """A process with limits in a folder of its own, and nothing more."""

    interpreter: Interpreter
    first_uid: int | None
    warning: str = ""
    isolation: Isolation = "plain"

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
        uid = None if self.first_uid is None else self.first_uid + slot
        if uid is not None and tasks_of(uid):  # the shim kills all that the user runs
            raise Fault(f"the user {uid} of slot {slot} runs other programs: end them, or give another first_uid")
        box = Path(tempfile.mkdtemp(prefix="lap-box-", dir=_scratch_folder(self.first_uid)))
        try:
            _furnish(box, read_source(source), uid)

            def command(report: int) -> Command:
                tasks = limits.processes + (1 + tasks_of(os.getuid()) if uid is None else 0)
                options = shim_options(limits, report=report, uid=uid, tasks=tasks)
                shim, program = self.interpreter.shim(str(SHIM)), self.interpreter.program(str(box / "program.py"))
                return Command([*shim, str(stdin.resolve()), *options, "--", *program, *arguments], (), box / "tmp")

            return launch(command, stdin, output=output, limits=limits, user=uid)
        finally:
            _clear(box)


def _scratch_folder(uid: int | None) -> str:
    """The folder for a run's own folder: the temporary one, or where that is closed to `uid` one that is open."""
    usual = tempfile.gettempdir()
    for folder in (usual, "/tmp", "/var/tmp"):  # noqa: S108  (the run's own folder in it has a fresh name)
        path = Path(folder)
        if uid is None or (path.is_dir() and all(part.stat().st_mode & 0o001 for part in (path, *path.parents))):
            return folder
    return usual


def _furnish(box: Path, source: bytes, uid: int | None) -> None:
    """Lays out the program and an empty folder to work in."""
    try:
        (box / "program.py").write_bytes(source)
        (box / "tmp").mkdir()
        if uid is not None:
            box.chmod(0o711)
            (box / "program.py").chmod(0o444)
            os.chown(box / "tmp", uid, uid)
    except OSError as error:
        raise Fault(f"cannot lay out a program in {box}: {error.strerror}") from error


def _clear(box: Path) -> None:
    """Removes the folder, also what the program made unreadable in it."""
    for folder, names, _ in os.walk(box):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(box, ignore_errors=True)


def tasks_of(uid: int) -> int:
    """How many threads the user runs now: the kernel's process limit counts them all."""
    count = 0
    for process in Path("/proc").iterdir():
        with suppress(OSError):  # it ended meanwhile
            if process.name.isdigit() and process.stat().st_uid == uid:
                count += sum(1 for _ in (process / "task").iterdir())
    return count
