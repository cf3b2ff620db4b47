"""What is loaded: nothing by `import lapledger`, nothing heavy by help, no tables and no screens to read a ledger."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lap import environment, sql

HEAVY = (
    *("duckdb", "sqlmodel", "scipy", "numba", "textual", "pyarrow", "numpy"),
    *("sqlalchemy", "matplotlib", "alembic", "torch", "ray"),
)
NOT_TO_READ = ("sqlmodel", "alembic", "scipy.stats", "statsmodels", "textual", "matplotlib", "torch", "ray")

LIST_LOADED = """
import contextlib, io, sys
from lapledger.cli.main import run
words, watched = sys.argv[1].split("\\n"), sys.argv[2].split()
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
    code = run(words)
assert code == 0, told.getvalue()
print(*[name for name in watched if name in sys.modules])
"""


def loaded(arguments: list[str], watched: tuple[str, ...]) -> list[str]:
    """Which of the watched modules a call of `lap` has loaded when it ends; the call must end well."""
    command = [sys.executable, "-c", LIST_LOADED, "\n".join(arguments), " ".join(watched)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_test_sees_what_is_loaded(demo: Path) -> None:
    """`lap sql` asks DuckDB, so that duckdb and pyarrow are seen here."""
    assert {"duckdb", "pyarrow"} <= set(loaded(["sql", "SELECT 1 AS one", "--ledger", str(demo)], HEAVY))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """No database, no arrays, no terminal toolkit for the list of commands."""
    assert loaded(arguments, HEAVY) == []


@pytest.mark.parametrize("command", ["replay", "sql", "why", "trace", "problems"])
def test_commands_that_read_load_only_what_they_need(demo: Path, command: str) -> None:
    """No SQL tables, no migrations, no distributions of scipy, no screens and no plots to read a ledger."""
    program = sql(demo, "SELECT program_id FROM reward ORDER BY program_id LIMIT 1")[0][0]
    reward = sql(demo, "SELECT reward_id FROM reward ORDER BY reward_id LIMIT 1")[0][0]
    more = {"why": [program], "sql": ["SELECT count(*) AS n FROM timing"], "trace": [reward], "replay": ["--tau", "30"]}
    assert loaded([command, *more.get(command, []), "--ledger", str(demo)], NOT_TO_READ) == []


LOADED = "import sys; before = set(sys.modules); import lapledger{then}; print(*sorted(set(sys.modules) - before))"


def imported(then: str = "") -> set[str]:
    """The modules that a fresh interpreter loads for `import lapledger`, and for what follows it."""
    command = [sys.executable, "-c", LOADED.format(then=then)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_import_loads_one_module_of_ours_and_no_third_party() -> None:
    """Only `lapledger` itself and parts of the standard library, so that a notebook starts at once."""
    names = imported()
    assert {name for name in names if name.startswith("lapledger")} == {"lapledger"}
    assert {name.partition(".")[0] for name in names} - sys.stdlib_module_names == {"lapledger"}


def test_a_public_name_loads_its_module() -> None:
    """The test above sees what is loaded: the error type brings its module and not the API; `open` brings the API."""
    assert {name for name in imported("; lapledger.UserError") if name.startswith("lapledger.api")} == set()
    assert {"lapledger.api", "lapledger.results"} <= imported("; lapledger.open")
    assert {"click", "rich", "pandas", "duckdb", "textual", "matplotlib", "torch"} & imported(
        "; lapledger.open"
    ) == set()
