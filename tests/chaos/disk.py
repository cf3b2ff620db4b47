"""A disk of a few MiB that only one process and its children see, filled up to the page, for commands to fail on.

A `tmpfs` in a mount namespace of our own: nothing of it is seen outside, and it is gone with the process.
"""

import ctypes
import os
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from lapledger.ledger.store.open_ledger import open_ledger
from tests.chaos import roles
from tests.chaos.checks import check_same_facts, check_state
from tests.support.lap import process

PAGE = 4096
NEW_MOUNTS, NEW_USERS = 0x20000, 0x10000000
PRIVATE = 0x4000 | 0x40000  # of this mount and all below it

Step = tuple[str, tuple[Any, ...]]

# What fills which file: each is tried with ever less room, on the ledger that the steps before it made.
STEPS: Sequence[Step] = (
    ("write", ("epoch-0", 0, 60)),  # the stream's log
    ("put", ()),  # blobs
    ("sink", ()),  # the database's log
    ("seal_tail", ()),  # Parquet, manifests, the database's log
    ("spool", ("epoch-1", 60, 120)),  # the spool's log, beside blobs and the stream's log
    ("sink", ()),
    ("seal_tail", ()),
    ("merge", ()),
)


FILES = ("ledger.sqlite", "stream.sqlite", "spool", "blobs", "segments")
"""Where a write may fail: what names of a file or folder tell of it."""


def small_disk(folder: str, template: str, tries: int, seed: int) -> dict[str, int]:
    """How often a command failed for want of room, by where it was writing; all else is asserted here."""
    disk = Path(folder)
    _mount(disk, 64 << 20)
    choice = Random(seed)  # noqa: S311  (a seed that reproduces)
    before = Path(shutil.copytree(template, disk / "step-0"))
    failed: Counter[str] = Counter()
    for number, (role, args) in enumerate(STEPS, start=1):
        after = Path(shutil.copytree(before, disk / f"step-{number}"))
        free = _free(disk)
        assert _child(role, after, args)[0] == 0
        pages = (free - _free(disk)) // PAGE
        admitted = Path(shutil.copytree(after, disk / "admitted"))
        if args:
            assert _child("sink", admitted, ())[0] == 0
        for part in range(tries):  # some room in each part of what it needs
            left = (part * pages + choice.randrange(max(1, pages))) // tries
            with _copy(disk / "tried", before, open_elsewhere=part % 2 == 1):
                failed[_failed_at(disk, (role, args), left)] += 1
            _compare(disk / "tried", admitted)
            shutil.rmtree(disk / "tried")
        shutil.rmtree(admitted)
        before = after
    return dict(failed)


def commands_when_full(folder: str, template: str) -> dict[str, tuple[int, str]]:
    """Command -> its exit code and what it printed, on a disk without one free page; and what a backup leaves."""
    disk = Path(folder)
    _mount(disk, 32 << 20)
    root = shutil.copytree(template, disk / "ledger")
    for index in root.glob("*-shm"):
        index.unlink()
    commands = {
        "verify": ("verify",),
        "status": ("status", "--json"),
        "sql": ("sql", "SELECT count(*) AS n FROM filter_decided", "--json"),
        "backup": ("ledger", "backup", str(disk / "backup")),
    }
    ended = {}
    with _filled(disk, 0):
        for name, args in commands.items():
            done = process(*args, "--ledger", root, TMPDIR=str(disk))
            ended[name] = done.code, f"{done.out}{done.err}"
    ended["left"] = (0, " ".join(sorted(path.name for path in disk.iterdir())))
    return ended


@contextmanager
def _copy(root: Path, before: Path, *, open_elsewhere: bool) -> Iterator[None]:
    """A copy of the ledger; with `others` it is open elsewhere too, so that SQLite's own files are there already."""
    shutil.copytree(before, root)
    with ExitStack() as stack:
        for name in ("ledger.sqlite", "stream.sqlite") if open_elsewhere else ():
            connection = stack.enter_context(closing(sqlite3.connect(root / name)))
            connection.execute("SELECT count(*) FROM sqlite_master")
        yield


def _failed_at(disk: Path, step: Step, left: int) -> str:
    """Where a step failed with so many pages left; then, and after it went on with more room, all is whole."""
    role, args = step
    root = disk / "tried"
    with _filled(disk, left):
        code, output = _child(role, root, args)
    assert code in (0, 2), f"{role} with {left} pages left ended with {code}: {output}"
    assert code == 0 or ("disk is full" in output and output.count("\n") == 1), (
        f"{role} with {left} pages left: {output}"
    )
    assert [str(path) for path in root.rglob("*.part")] == []
    _check(root)
    again = (f"{args[0]}-again", *args[1:]) if args else ()
    code_again, output_again = _child(role, root, again)
    assert code_again == 0, output_again
    if args:  # a role with arguments appends
        assert _child("sink", root, ())[0] == 0
    return "nowhere" if code == 0 else next(file for file in FILES if f"tried/{file}" in output)


def _check(root: Path) -> None:
    ledger = open_ledger(root)
    try:
        check_state(ledger)
    finally:
        ledger.close()


def _compare(root: Path, undisturbed: Path) -> None:
    ledger, calm = open_ledger(root), open_ledger(undisturbed)
    try:
        check_state(ledger)
        check_same_facts(ledger, calm)
    finally:
        ledger.close()
        calm.close()


@contextmanager
def _filled(disk: Path, left: int) -> Iterator[None]:
    """The disk with so many free pages."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, _free(disk) - left * PAGE)
    try:
        yield
    finally:
        ballast.unlink()


def _free(disk: Path) -> int:
    usage = os.statvfs(disk)
    return usage.f_bavail * usage.f_frsize


def _child(role: str, root: Path, args: tuple[Any, ...]) -> tuple[int, str]:
    """A role in a process of its own: its exit code, and what it said, kept off the small disk."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        for number in (1, 2):
            os.dup2(writing, number)
        code = 70
        try:
            code = roles.play(roles.ROLES[role], [str(root), *args], None)
            sys.stdout.flush()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, errors="replace") as pipe:
        output = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output


def _mount(disk: Path, size: int) -> None:
    """Mounts a `tmpfs` that only this process and its children see; a user without rights gets a namespace first."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(NEW_MOUNTS) != 0:
        _checked(libc.unshare(NEW_MOUNTS | NEW_USERS))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _checked(libc.mount(b"none", b"/", None, PRIVATE, None))
    _checked(libc.mount(b"tmpfs", os.fsencode(disk), b"tmpfs", 0, f"size={size}".encode()))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


ROLES = {role.__name__: role for role in (small_disk, commands_when_full)}
