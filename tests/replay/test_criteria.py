"""Criteria: plain data, checked against one table, with one canonical form and hash."""

import dataclasses
import hashlib
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.replay.criteria import PRESETS, SCHEMA, Criterion, describe, preset
from lapledger.replay.errors import ReplayError


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
def test_every_allowed_text_is_accepted(doc):
    """What the documentation allows is allowed, the default comes first, and only a change enters the hash."""
    parts = doc.allowed.split(" | ") if " | " in doc.allowed else [doc.default]
    beside = {"reward": "collapsed"} if doc.name == "shape" else {}
    for part in parts:
        criterion = Criterion.from_mapping({doc.name: part, **beside})
        assert getattr(criterion, doc.name) == part
        assert (criterion.hash == Criterion(**beside).hash) == (part == doc.default)
    assert parts[0] == doc.default


@given(st.integers(1, 10**11))
def test_tau_is_read_by_its_decimal_text(billionths):
    """Every spelling of the same decimal number gives the same exact threshold and the same hash."""
    integer, rest = divmod(billionths, 10**9)
    text = f"{integer}.{rest:09d}"
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
    ("mapping", "parts"),
    [
        ({"taw": 30}, ["'taw'", "did you mean 'tau'", "reading", "reward"]),
        ({"tau": 0}, ["'tau'", "0", "0 < tau <= 100"]),
        ({"tau": "100.1"}, ["'tau'", "100.1"]),
        ({"tau": True}, ["'tau'", "True"]),
        ({"tau": "nan"}, ["'tau'", "nan"]),
        ({"tau": "12.\u0665"}, ["'tau'", "12.\u0665"]),  # a decimal digit, but not one of ours: a second hash for 12.5
        ({"reading": "score "}, ["'reading'", "'score '", "leaderboard | score"]),
        ({"clock": 1}, ["'clock'", "wall | cpu"]),
        ({"timeout_ms": 0.5}, ["'timeout_ms'", "0.5"]),
        ({"timeout_ms": 10**10}, ["'timeout_ms'", "1000000000"]),
        ({"min_references": 0}, ["'min_references'", "0"]),
        ({"schema": SCHEMA + 1}, ["'schema'", str(SCHEMA + 1)]),
        ({"buckets": 1}, ["'buckets'", "2 to 1000"]),
        ({"split": "1.1"}, ["'split'", "0 <= split <= 1"]),
        ({"limit_factor": 0}, ["'limit_factor'", "0 < limit_factor <= 1000"]),
        ({"keep_share": 101}, ["'keep_share'", "absent"]),
        ({"reading": "score", "statistic": "total"}, ["'total'", "'leaderboard'"]),
        ({"reward": "collapsed-binary", "shape": "split"}, ["'collapsed-binary'", "'split'", "'collapsed'"]),
        ({"clock": "memory", "limit_ms": 5}, ["limit_ms", "'memory'"]),
        ({"clock": "memory", "startup": "subtract"}, ["startup", "'memory'"]),
        ({"clock": "cpu", "startup": "subtract"}, ["startup = 'subtract'", "'cpu'", "'wall'"]),
        ({"clock": "memory", "reading": "raw-duration"}, ["reading", "'memory'"]),
    ],
)
def test_a_wrong_key_or_value_is_named_in_one_line(mapping, parts):
    """The message names the key, the value and what is allowed, in one line."""
    with pytest.raises(ReplayError) as caught:
        Criterion.from_mapping(mapping)
    assert all(part in str(caught.value) for part in parts)
    assert "\n" not in str(caught.value)


def test_text_that_is_not_toml_is_refused():
    """A parser's error becomes ours."""
    with pytest.raises(ReplayError, match="not valid TOML"):
        Criterion.from_toml("tau 30")


PINNED = {
    "correct": "67d6291b3014",
    "rlvr": "2c22f9232de0",
    "rlvr-added-tests": "81c9ff899631",
    "pre-0.1s": "86f4324a6ee0",
    "pre-0.5s": "9a2ea53c753b",
    "pre-2s": "4bce0737f217",
    "pre-10m-characters": "e0d9142377cb",
    "pre-slowest-50": "20be47986bb1",
    "timeout-0.5s": "7c44a71af153",
    "timeout-2s": "032e5fcaf8a4",
    "relative-p20": "7038819f8a71",
    "relative-p50": "457e959b2f58",
    "relative-p80": "90b5bf0b506c",
    "ranked-worst-p20": "7e180dce4b54",
    "ranked-worst-p50": "88320671360d",
    "ranked-worst-p80": "32e2119df89f",
    "top-80": "ddba260b987b",
    "top-50": "806b7c604379",
    "top-30": "ae497ac1222b",
    "top-10": "3297a2e5f228",
    "per-test-top-80": "3b7f3ab30f13",
    "per-test-top-50": "9d5b7721cd14",
    "per-test-top-30": "7702a6dcfe79",
    "raw-duration": "36afdca583b6",
    "leaderboard": "d703330ffa6a",
    "split": "240fb5810a48",
    "optimization-only": "3b685fac5ae4",
    "additive": "fc5b66b941df",
    "multitask": "de13ad2c59ff",
}


def test_presets_keep_their_names_and_hashes():
    """A preset's name stands for one question for ever; 48 bits of its hash are written here."""
    assert {name: criterion.hash[:12] for name, criterion in PRESETS.items()} == PINNED
    with pytest.raises(ReplayError, match="did you mean 'top-30'"):
        preset("top30")


def test_presets_in_texts():
    """What stands in the canonical forms, read back: the paper's parameters and no others."""
    stated = {name: json.loads(criterion.canonical()) for name, criterion in PRESETS.items()}
    intra = {"schema": 1, "timeouts": "tolerated", "in_time": "required", "reading": "over-limit"}
    assert stated["rlvr"] == {
        "schema": 1,
        "correctness": "original",
        "reading": "zero",
        "reward": "correctness-only",
    }
    assert stated["pre-2s"] == {"schema": 1, "timeouts": "tolerated", "in_time": "required", "keep_ms": 2000}
    assert stated["pre-10m-characters"]["keep_chars"] == 10_000_000
    assert stated["timeout-0.5s"] == intra | {"limit_ms": 500}
    assert stated["relative-p20"] == intra | {"limit_quantile": "20"}
    assert stated["ranked-worst-p80"] == intra | {"limit_ranked": "80"}
    assert stated["per-test-top-30"] == {"schema": 1, "tau": "30", "reading": "score"}
    assert stated["top-30"] == {"schema": 1, "tau": "30"}
    assert stated["leaderboard"] == {"schema": 1, "reward": "two-gate", "shape": "bucketed"}


def test_a_reference_shapes_filters_and_limits_by_what_does_not_depend_on_them():
    """The criterion without its filters and limits, and nothing else changed."""
    criterion = Criterion(keep_ms=1, keep_chars=2, keep_share=3, limit_ms=4, limit_quantile=5, limit_ranked=6, tau=7)
    assert criterion.unfiltered() == Criterion(tau=7)
    assert (criterion.filters, criterion.limits) == (True, True)
    assert (criterion.unfiltered().filters, criterion.unfiltered().limits) == (False, False)
