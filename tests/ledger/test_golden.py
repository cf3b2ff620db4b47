"""Every event type ever written has a golden sample, and it decodes for ever to the same values and digest."""

import json

import pytest

from lapledger.ledger.events import EVENTS, from_batch
from lapledger.ledger.frames.frame import Record, decode
from tests.ledger.facts import GOLDEN, sample_events


def test_every_type_has_a_golden_sample() -> None:
    """A new type or version is not complete without its sample, and no sample is ever deleted."""
    assert {path.name for path in GOLDEN.glob("*.arrow")} == {f"{name}.v{version}.arrow" for name, version in EVENTS}


@pytest.mark.parametrize(("name", "version"), sorted(EVENTS))
def test_a_golden_sample_decodes_to_its_values_and_digest(name: str, version: int) -> None:
    """`decode` recomputes the digest and compares it with the stored header; the values follow from column and row."""
    path = GOLDEN / f"{name}.v{version}.arrow"
    headers = json.loads(path.with_suffix(".json").read_text())
    frame = decode(Record(headers, path.read_bytes()))
    assert from_batch(frame.declared, frame.batch) == sample_events(EVENTS[name, version])
    assert frame.digest == headers["ce_lapdigest"]
