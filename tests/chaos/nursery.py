"""Real processes to kill: a nursery that has imported everything forks them in milliseconds, by name of a role.

This module is both ends: `Nursery` and `Victim` for tests, `main` for the nursery itself. A victim is a process of its
own with its own files and connections; nothing is shared but what lies on the disk.
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
AIMS = 100
"""How often a kill that is to fall inside a transaction looks for one before it falls anywhere."""

Crash = tuple[str, int, str]
"""A named point, the hit that counts, and the name of the signal that comes then."""

PATIENCE = 240.0
WRITE_LOCK = 120
"""The byte of a `-shm` file that SQLite locks for a writing transaction, from its begin to its commit."""


def _has_ended(handle: int, seconds: float) -> bool:
    """Whether a process has ended, or does in time. By poll: a long run may hold more files than select can count."""
    ready = select.poll()
    ready.register(handle, select.POLLIN)
    return bool(ready.poll(1000 * seconds))


@dataclass(slots=True)
class Victim:
    """A process that plays a role. `status` is None while it runs, then its exit code, negative for a signal."""

    pid: int
    out: Path
    _reap: Callable[[int], int]
    _handle: int
    status: int | None = None

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit code, once it ended; the test fails when it does not in time."""
        if self.status is None:
            if not _has_ended(self._handle, seconds):
                self.kill()
                raise AssertionError(f"the process {self.pid} did not end in {seconds} s; its output: {self.output()}")
            self.status = self._reap(self.pid)
            os.close(self._handle)
        return self.status

    def ended(self) -> bool:
        """Whether it has ended."""
        if self.status is None and _has_ended(self._handle, 0):
            self.wait()
        return self.status is not None

    def kill(self) -> int:
        """Ends it by SIGKILL; its exit code."""
        if self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def pause(self) -> None:
        """Stops it by SIGSTOP; returns when the kernel says that it stands still, or it has ended."""
        if not self.ended():
            os.kill(self.pid, signal.SIGSTOP)
            self.until_paused()

    def until_paused(self, seconds: float = PATIENCE) -> None:
        """Returns when it stands still, stopped by whomever, or has ended."""
        deadline = time.monotonic() + seconds
        while not self.ended() and _state(self.pid) != "T":
            assert time.monotonic() < deadline, f"the process {self.pid} did not stop; its output: {self.output()}"
            time.sleep(0.001)

    def go_on(self) -> None:
        """Lets it run again."""
        if not self.ended():
            os.kill(self.pid, signal.SIGCONT)

    def in_transaction(self, *databases: Path) -> bool:
        """Whether it stands, paused, inside a writing transaction of one of these SQLite files: the kernel knows."""
        inodes = {path.stat().st_ino for base in databases if (path := base.with_name(f"{base.name}-shm")).exists()}
        return any(_is_write_lock(line, self.pid, inodes) for line in Path("/proc/locks").read_text().splitlines())

    def pause_inside(self, choice: Random, seconds: float, *databases: Path) -> bool:
        """Pauses it inside a writing transaction, looked for at random moments; False when none was met in so many."""
        for _ in range(AIMS):
            self.pause()
            if self.ended() or self.in_transaction(*databases):
                return not self.ended()
            self.go_on()
            time.sleep(choice.uniform(0, seconds))
        self.pause()
        return self.in_transaction(*databases)

    def output(self) -> str:
        """What it has printed so far."""
        return self.out.read_text(errors="replace")

    def result(self) -> Any:
        """The JSON that it printed last, on a line of its own."""
        return json.loads(self.output().splitlines()[-1])


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def _is_write_lock(line: str, pid: int, inodes: set[int]) -> bool:
    """A line of /proc/locks: number, kind, ADVISORY, WRITE, pid, device and inode, first byte, last byte."""
    fields = line.split()
    if len(fields) < 8 or fields[3] != "WRITE" or fields[4] != str(pid):
        return False
    last = 2**63 if fields[7] == "EOF" else int(fields[7])
    return int(fields[5].rsplit(":", 1)[1]) in inodes and int(fields[6]) <= WRITE_LOCK <= last


@dataclass(slots=True)
class Nursery:
    """Makes victims. One process, closed at the end; what still lives then is killed."""

    folder: Path
    process: subprocess.Popen[str]
    _numbers: Iterator[int] = field(default_factory=count)

    def start(self, role: str, *args: Any, crash: Crash | None = None) -> Victim:
        """A process that plays a role of `roles` with these plain arguments; dies at the armed point, if any."""
        out = self.folder / f"victim-{next(self._numbers)}.txt"
        out.touch()
        pid = self._request(
            do="start", role=role, args=[_plain(argument) for argument in args], crash=crash, out=str(out)
        )
        return Victim(pid, out, self._reap, os.pidfd_open(pid))

    def run(self, role: str, *args: Any, crash: Crash | None = None) -> Victim:
        """The same, waited for."""
        victim = self.start(role, *args, crash=crash)
        victim.wait()
        return victim

    def done(self, role: str, *args: Any) -> Any:
        """What a process returned that must end well."""
        victim = self.run(role, *args)
        assert victim.status == 0, f"{role} ended with {victim.status}: {victim.output()}"
        return victim.result()

    def _reap(self, pid: int) -> int:
        return self._request(do="reap", pid=pid)

    def _request(self, **question: Any) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


@contextmanager
def nursery(folder: Path, **more: str) -> Iterator[Nursery]:
    """A nursery whose victims write what they say below `folder`, with more variables in their environment."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"} | more
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.nursery"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=HERE.parents[1],
    )
    with process:
        try:
            yield Nursery(folder, process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE)


def main() -> None:
    """Serves orders, a line of JSON each, until its standard input ends; then kills who still lives."""
    from tests.chaos import disk, roles

    known = roles.ROLES | disk.ROLES
    _learn()
    living: set[int] = set()
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "start":
            pid = os.fork()
            if pid == 0:
                _play(known[order["role"]], order)
            living.add(pid)
            answer = pid
        else:
            _, status = os.waitpid(order["pid"], 0)
            living.discard(order["pid"])
            answer = os.waitstatus_to_exitcode(status)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    for pid in living:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _learn() -> None:
    """Imports what victims import while they play, learnt from one that plays everything once.

    Only modules are loaded here: this process has one thread and opens nothing, so that it can be forked.
    """
    from tests.chaos import roles

    before = set(sys.modules)
    reading, writing = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writing, "w") as answer:
            roles.rehearse()
            answer.write("\n".join(sorted(set(sys.modules) - before)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        for name in answer.read().split():
            with suppress(ImportError):
                importlib.import_module(name)
    _, status = os.wait()
    if status:
        raise SystemExit("the rehearsal failed")


def _play(role: Callable[..., Any], order: dict[str, Any]) -> None:
    """The whole life of a victim: plays its role, tells what came of it as JSON, and ends."""
    from tests.chaos import roles

    handle = os.open(order["out"], os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(handle, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = roles.play(role, order["args"], order["crash"])
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
