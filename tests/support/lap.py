"""Runs `lap` for tests: within this process, which is quick, or as a process of its own, as a user does."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapledger.cli.main import run

LAP = str(Path(sys.executable).with_name("lap"))


@dataclass(frozen=True)
class Done:
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """The environment of a test's commands: none of the user's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("LAP_")}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "160", **more}


def process(*arguments: object, cwd: Path | None = None, **more: str) -> Done:
    """One call of `lap` in a process of its own."""
    command = [LAP, *(str(argument) for argument in arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment(**more), capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def lap(*arguments: object, cwd: Path | None = None) -> Done:
    """One call of `lap` within this process, through the same entry point."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd or Path.cwd()):
        code = run([str(argument) for argument in arguments])
    return Done(code, out.getvalue(), err.getvalue())


def well(*arguments: object, cwd: Path | None = None) -> Done:
    """One call of `lap` that must end well."""
    done = lap(*arguments, cwd=cwd)
    assert done.code == 0, f"lap {' '.join(map(str, arguments))}: {done.code}\n{done.out}\n{done.err}"
    return done


def sql(ledger: Path, query: str) -> list[list[Any]]:
    """The rows of a query."""
    rows: list[list[Any]] = well("sql", query, "--ledger", ledger, "--json").json["rows"]
    return rows
