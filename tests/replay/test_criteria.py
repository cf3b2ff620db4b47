"""Criteria: plain data, checked against one table, with one canonical form and hash."""

import dataclasses
import hashlib
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.criteria import PRESETS, SCHEMA, Criterion, describe, preset
from replay.errors import ReplayError


def test_golden_hashes():
    """Hashes name stored rewards: they must never change. Expected: sha256 of the JSON written out by hand."""
    assert Criterion().canonical() == b'{"schema":1}'
    text = b'{"reading":"score","schema":1,"tau":"12.5","timeout_ms":500,"timeouts":"tolerated"}'
    criterion = Criterion(tau="12.5", reading="score", timeout_ms=500, timeouts="tolerated")
    assert criterion.canonical() == text
    assert criterion.hash == hashlib.sha256(text).hexdigest()
    assert preset("top-30").hash == "ae497ac1222b93cc518dd0f3026b56f86a215affa96a79a239e76d64edbcd69b"


def test_every_field_is_documented_with_its_default():
    """The table of fields and the dataclass name the same fields, in the same order, with the same defaults."""
    fields = [(field.name, field.default) for field in dataclasses.fields(Criterion)]
    assert [(doc.name, doc.default) for doc in describe()] == fields
    assert all(doc.meaning and doc.allowed for doc in describe())


@pytest.mark.parametrize("doc", describe(), ids=lambda doc: doc.name)
def test_every_allowed_word_is_accepted(doc):
    """What the documentation allows is allowed, the default comes first, and only a change enters the hash."""
    words = doc.allowed.split(" | ") if " | " in doc.allowed else [doc.default]
    for word in words:
        criterion = Criterion.from_mapping({doc.name: word})
        assert getattr(criterion, doc.name) == word
        assert (criterion.hash == Criterion().hash) == (word == doc.default)
    assert words[0] == doc.default


@given(st.integers(1, 10**11))
def test_tau_is_read_by_its_decimal_text(billionths):
    """Every spelling of the same decimal number gives the same exact threshold and the same hash."""
    whole, rest = divmod(billionths, 10**9)
    text = f"{whole}.{rest:09d}"
    criterion = Criterion(tau=text)
    assert criterion.threshold == Fraction(billionths, 10**11)
    assert Criterion(tau=criterion.tau).canonical() == criterion.canonical()
    assert Criterion.from_toml(f"tau = {text}") == criterion


def test_numbers_of_toml_are_exact():
    """12.5 is 25/2 and 0.1 is 1/10, not the nearest float; 30, 30.0 and "30" are one criterion."""
    assert Criterion.from_toml("tau = 12.5").threshold == Fraction(25, 200)
    assert Criterion.from_mapping({"tau": 0.1}).threshold == Fraction(1, 1000)
    assert len({Criterion.from_toml(f"tau = {text}").hash for text in ("30", "30.0", '"30"')}) == 1


def test_the_canonical_form_reads_back():
    """A stored canonical form gives the criterion again, its schema number included."""
    criterion = Criterion(tau="10", missing="fail", min_references=5)
    assert Criterion.from_mapping(json.loads(criterion.canonical())) == criterion


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"taw": 30}, ["'taw'", "did you mean 'tau'", "reading", "reward"]),
        ({"tau": 0}, ["'tau'", "0", "0 < tau <= 100"]),
        ({"tau": "100.1"}, ["'tau'", "100.1"]),
        ({"tau": True}, ["'tau'", "True"]),
        ({"tau": "nan"}, ["'tau'", "nan"]),
        ({"reading": "score "}, ["'reading'", "'score '", "leaderboard | score"]),
        ({"clock": 1}, ["'clock'", "wall | cpu"]),
        ({"timeout_ms": 0.5}, ["'timeout_ms'", "0.5"]),
        ({"timeout_ms": 10**10}, ["'timeout_ms'", "1000000000"]),
        ({"min_references": 0}, ["'min_references'", "0"]),
        ({"schema": SCHEMA + 1}, ["'schema'", str(SCHEMA + 1)]),
    ],
)
def test_a_wrong_key_or_value_is_named_in_one_line(mapping, words):
    """The message names the key, the value and what is allowed, in one line."""
    with pytest.raises(ReplayError) as caught:
        Criterion.from_mapping(mapping)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


def test_text_that_is_not_toml_is_refused():
    """A parser's error becomes ours."""
    with pytest.raises(ReplayError, match="not valid TOML"):
        Criterion.from_toml("tau 30")


def test_presets():
    """The presets are p_100, p_50, p_30, p_10 by leaderboard, and the per-test top 50 and 30."""
    assert {name: (c.tau, c.reading) for name, c in PRESETS.items()} == {
        "correct": ("100", "leaderboard"),
        "top-50": ("50", "leaderboard"),
        "top-30": ("30", "leaderboard"),
        "top-10": ("10", "leaderboard"),
        "per-test-top-50": ("50", "score"),
        "per-test-top-30": ("30", "score"),
    }
    with pytest.raises(ReplayError, match="did you mean 'top-30'"):
        preset("top30")
