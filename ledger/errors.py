"""The kinds of failure that reach a person: the user's mistake, our own fault, and a disk without room.

Each message is one line that says what is wrong, where, and what to do next. Foreign errors are translated into these
once, at the boundary where they arise. A candidate program's failure is data and never one of these.
"""

import difflib
import errno
from collections.abc import Iterable


class LapError(Exception):
    """Any failure that is reported as one line instead of a traceback."""

    exit_code = 1


class UserError(LapError, ValueError):
    """The user's mistake: a wrong file, name, option or state; exit code 2."""

    exit_code = 2


class Fault(LapError):  # noqa: N818  (the field's term is "infrastructure fault")
    """Our fault or the machine's: a lost server, a broken file of ours; exit code 1."""


class Damage(Fault):
    """A file of ours does not hold what was written into it."""


class Unavailable(LapError):  # noqa: N818  (as messages use it)
    """A server that does not answer now; the same call may succeed later. Not a `Fault`: the data may be fine."""


class SpoolFull(Fault):
    """The broker stayed away until no more could be kept for it: whoever produces takes no more work and ends."""


class DiskFull(Fault):
    """No room left; the user frees some and repeats the command, so exit code 2."""

    exit_code = 2


FULL = "the disk is full; free some space and run it again, nothing was half-written"


_PATH_ERRORS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ELOOP,
    errno.ENAMETOOLONG,
)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name that is most like one that is not known; "" where none is like it."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def io_fault(error: OSError, what: str) -> LapError:
    """The one-line error for a failed read or write; `what` names the operation and the path.

    A missing or unwritable path is the user's mistake, as is a full disk; everything else is a fault.
    """
    reason = error.strerror or type(error).__name__
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"{what}: {FULL}")
    if error.errno in _PATH_ERRORS or isinstance(error, FileExistsError):
        return UserError(f"{what}: {reason}; choose another path or fix this one, and run it again")
    return Fault(f"{what}: {reason}; check the disk, and run it again")


def sql_fault(error: BaseException | None, what: str) -> Fault:
    """The one-line fault for a failed database; `what` names the database."""
    reason = " ".join(str(error).split())
    if "disk is full" in reason or getattr(error, "sqlite_errorname", "") == "SQLITE_IOERR_SHMSIZE":
        return DiskFull(f"{what}: {FULL}")
    damaged = getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
    return (Damage if damaged else Fault)(f"{what}: {reason}; check its disk and run it again")
