"""Fixtures of the ledger's tests: real databases in temporary folders."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.local import LocalStream
from tests.ledger.facts import new_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A fresh ledger of the identity `identity-0`."""
    new = new_ledger(tmp_path / "ledger")
    yield new
    new.close()


@pytest.fixture
def stream(ledger: Ledger) -> Iterator[LocalStream]:
    """The fresh ledger's local stream."""
    local = ledger.stream()
    yield local
    local.close()
