"""Processes that outlive the command that started them: their pids, their end, and ports that stay theirs.

A pid is trusted only when the process names the server's folder on its command line: pids are used again.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

from lapledger.ledger.errors import Fault, io_fault

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
POLL_SECONDS = 0.02


def pid_in(file: Path) -> int | None:
    """The number on the first line of a pid file; None when there is none."""
    try:
        return int(file.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


def is_ours(pid: int | None, folder: Path) -> bool:
    """Whether a live process of this number names the folder on its command line."""
    path = os.fsencode(folder.resolve())
    return pid is not None and any(path == argument or path + b"/" in argument for argument in _command(pid))


def _command(pid: int) -> list[bytes]:
    """The arguments of a process's command line; none when it ended."""
    try:
        return [argument for argument in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if argument]
    except OSError:
        return []


def start(arguments: list[str], log: Path, pid_file: Path) -> int:
    """The pid of a program started in a session of its own, so that Ctrl-C here does not reach it.

    It gets none of our environment, where secrets may be; its output goes to `log`. Once it runs its pid is in its
    file, whatever happens to us.
    """
    output = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    try:
        with _uninterrupted() as mask:
            pid = os.posix_spawn(
                arguments[0], arguments, environment, file_actions=actions, setsid=True, setsigmask=mask
            )
            pid_file.write_text(f"{pid}\n")
            wait_until(lambda: bool(_command(pid)), 1)  # its command line shows a moment after it runs
    except OSError as error:
        raise io_fault(error, f"cannot start {arguments[0]}") from error
    return pid


@contextmanager
def _uninterrupted() -> Iterator[set[signal.Signals]]:
    """Ctrl-C and SIGTERM wait until the block ends; the signals that were held back before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield {number for number in before if isinstance(number, signal.Signals)}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_until(reached: Callable[[], bool], seconds: float) -> bool:
    """Whether something came true in time."""
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def end(pid: int | None, folder: Path, *, by: signal.Signals, patience: float) -> bool:
    """Ends a process of ours by a signal, and by SIGKILL after `patience` seconds; whether there was one to end."""
    if pid is None or not is_ours(pid, folder):
        return False
    for sign, seconds in ((by, patience), (signal.SIGKILL, patience)):
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        if wait_until(lambda: _gone(pid, folder), seconds):
            return True
    raise Fault(f"process {pid} of {folder} does not end; end it by `kill -9 {pid}`")


def _gone(pid: int, folder: Path) -> bool:
    with suppress(ChildProcessError, ProcessLookupError):
        os.waitpid(pid, os.WNOHANG)  # a child of ours would stay as a zombie
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    if state in "ZX":
        return int(numbers[16]) <= 1  # the last of its threads frees its ports
    return bool(_command(pid)) and not is_ours(pid, folder)  # a dying one has no command any more


def free_ports(count: int, choice: Random) -> list[int]:
    """Loopback ports that nobody listens on, below those that the system gives to clients.

    A client that knocks on a client's port while its server is down can connect to itself and take the port.
    """
    with ExitStack() as held:
        ports: list[int] = []
        for _ in range(10_000):
            port = choice.randrange(10_000, _first_ephemeral())
            bound = socket.socket()
            held.callback(bound.close)
            with suppress(OSError):
                bound.bind(("127.0.0.1", port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise Fault("no free port was found on 127.0.0.1; close some servers and run it again")


def _first_ephemeral() -> int:
    try:
        return max(11_000, int(EPHEMERAL.read_text().split()[0]))
    except (OSError, ValueError):
        return 32_768


def listens(port: int) -> bool:
    """Whether somebody listens on a loopback port."""
    with socket.socket() as knock:
        knock.settimeout(1)
        return knock.connect_ex(("127.0.0.1", port)) == 0
