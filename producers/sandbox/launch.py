"""Starts a sandbox's command, waits for its end and gathers report, output and standard error.

The shim times and kills the program; here is only the backstop for a sandbox that hangs. What our own files refuse
(a full disk, a missing test) is a Fault; what the sandbox's command refuses is a "sandbox_fault".
"""

import errno
import os
import select
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lapledger.ledger.errors import DiskFull, Fault
from lapledger.producers.sandbox.limits import ENVIRONMENT, MIB, SECOND_NS, Execution, Limits
from lapledger.producers.sandbox.outcomes import TAIL_CHARACTERS, Written, execution, parse_report

GRACE_NS = 10 * SECOND_NS
REPORT_BYTES = 65_536
PARTING_S = 1.0


@dataclass(frozen=True, slots=True)
class Command:
    """A sandbox's command line, the descriptors that it takes over, and the folder that it starts in."""

    arguments: Sequence[str]
    descriptors: tuple[int, ...]
    folder: Path = Path("/")


def read_source(source: bytes | Path) -> bytes:
    """The program's text. Raises Fault when the file cannot be read."""
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        raise Fault(f"cannot read the program {source}: {error.strerror}") from error


@contextmanager
def in_memory(name: str, data: bytes) -> Iterator[int]:
    """A descriptor from which `data` can be read once; it has no place in any folder."""
    descriptor = os.memfd_create(name)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def launch(
    command: Callable[[int], Command], stdin: Path, *, output: Path, limits: Limits, user: int | None
) -> Execution:
    """How the command built for the report's descriptor ended; its output is in `output`, cut at the limit.

    `user` owns standard output and error meanwhile, so that the program can open /dev/stdout; None: the worker does.
    """
    if not os.access(stdin, os.R_OK):
        raise Fault(f"cannot read the test input {stdin}: is it still there?")
    with ExitStack() as stack:
        out = _open_output(output, limits)
        stack.callback(os.close, out)
        err = os.memfd_create("stderr")
        stack.callback(os.close, err)
        if user is not None:
            os.fchown(out, user, user)
            os.fchown(err, user, user)
        kills = out_of_memory_kills()
        report = parse_report(_supervise(command, out, err, limits))
        written = _written(out, err, limits)
        result = execution(report, written, limits, machine_out_of_memory=out_of_memory_kills() > kills)
        if result.outcome != "ok" and _room(out) < MIB:
            raise DiskFull(f"the disk of {output} is full; free some space and run the same command again")
        return result


def _open_output(path: Path, limits: Limits) -> int:
    """A file that no run has had: attributes that a program gave the old one would tell its next run the answer."""
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISREG(path.lstat().st_mode):
                path.unlink()
        out = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Fault(f"cannot write the output {path}: {error.strerror}") from error
    room = _room(out)
    if room < limits.output_bytes:
        os.close(out)
        raise DiskFull(
            f"the disk of {path} has room for {room} bytes, the output limit is {limits.output_bytes}; free some space"
        )
    return out


def _room(descriptor: int) -> int:
    disk = os.fstatvfs(descriptor)
    return disk.f_bavail * disk.f_frsize


def _supervise(command: Callable[[int], Command], out: int, err: int, limits: Limits) -> bytes:
    """The report's bytes; empty where there is none, with the reason at the end of standard error."""
    report_out, report_in = os.pipe()
    process = None
    try:
        try:
            process = _start(command(report_in), report_in, out, err)
        finally:
            os.close(report_in)
        if _ends(process, limits):
            return os.read(report_out, REPORT_BYTES)
        os.write(err, b"the sandbox outlived its limit")
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise Fault(f"cannot start a sandbox: {error.strerror}") from error
        os.write(err, f"cannot start: {error}".encode())
    finally:
        os.close(report_out)  # a shim that is still there kills its program and ends
        if process is not None:
            _stop(process)
    return b""


def _start(command: Command, report_in: int, out: int, err: int) -> "subprocess.Popen[bytes]":
    """A process in a session of its own, so that it has no terminal and one signal reaches the whole group."""
    return subprocess.Popen(  # noqa: S603  a list, never a shell
        command.arguments,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        cwd=command.folder,
        env=ENVIRONMENT,
        pass_fds=(report_in, *command.descriptors),
        start_new_session=True,
    )


def _ends(process: "subprocess.Popen[bytes]", limits: Limits) -> bool:
    """Whether the command ends within the limit and the grace; waits without polling."""
    handle = os.pidfd_open(process.pid)
    try:
        waiter = select.poll()
        waiter.register(handle, select.POLLIN)
        return bool(waiter.poll((limits.wall_ns + GRACE_NS) // 1_000_000))
    finally:
        os.close(handle)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Waits for the end, and after a moment kills the whole group."""
    try:
        process.wait(timeout=PARTING_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _written(out: int, err: int, limits: Limits) -> Written:
    """Sizes and the end of standard error; leaves the output readable for us and cut at the limit."""
    size, errors = os.fstat(out).st_size, os.fstat(err).st_size
    os.fchown(out, os.geteuid(), os.getegid())
    os.fchmod(out, 0o600)  # a program that owned it could have shut us out
    if size > limits.output_bytes:
        os.ftruncate(out, limits.output_bytes)
    most = 4 * TAIL_CHARACTERS  # a character takes up to four bytes
    return Written(size, errors, os.pread(err, most, max(errors - most, 0)))


def out_of_memory_kills() -> int:
    """How many processes the kernel has killed for want of memory since the machine's start; 0 where unknown."""
    with suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
