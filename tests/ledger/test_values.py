"""Values that no reader could use, or that contradict their own ids, are quarantined and never admitted."""

import dataclasses
from typing import Any

import pytest
from sqlalchemy import text

from lapledger.consumers.ingest.sink import Drained, drain
from lapledger.ledger.events import (
    EVENTS,
    CriterionDeclared,
    Event,
    ExecutionFinishedV2,
    ExecutionShared,
    RewardAssigned,
)
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from tests.ledger.facts import attempt, sample_events, sample_fact

REWARD = RewardAssigned(
    reward_id="r",
    problem_id="p",
    program_id="p/program",
    campaign_id="c",
    criterion_hash="h",
    calibration_id=None,
    value=1.0,
    c=True,
    g=True,
    q_numerator=1,
    q_denominator=2,
    pool_size=3,
    evidence_digest="e" * 64,
    kernel="1",
    cut="control=0,facts=0.0.0.0,requests=0",
)
TIMING, FINISHED = attempt(1, 1)
IMPORTED = ExecutionFinishedV2(**{f.name: getattr(FINISHED, f.name) for f in dataclasses.fields(FINISHED)})
UNSPECIFIED = dataclasses.replace(IMPORTED, outcome="failed")
PROGRAM = dataclasses.replace(sample_fact("program.added"), source_blob="5" * 64)
TEST = dataclasses.replace(sample_fact("test.added"), input_blob="1" * 64, answer_blob="2" * 64)
CALIBRATION = dataclasses.replace(
    sample_events(EVENTS["calibration.fitted", 1], 1)[0], evidence_digest="e" * 64, refused=""
)
REFUSED = dataclasses.replace(CALIBRATION, a=float("nan"), b_ns=float("nan"), r2=None, refused="too few pairs")
SHARED = ExecutionShared(
    campaign_id="c", problem_id="p", program_id="p/a", executed_program_id="p/b", source_blob="5" * 64
)
STEP = dataclasses.replace(sample_events(EVENTS["step.taken", 1], 1)[0], loss=float("nan"))


def take(ledger: Ledger, stream: LocalStream, event: Event) -> tuple[Drained, list[str]]:
    """What the sink did with one event, and the reasons in quarantine."""
    Producer(stream, "epoch-v", "test", "0").append([event])
    drained = drain(ledger, stream)
    with reading(ledger.engine) as connection:
        return drained, list(connection.execute(text("SELECT reason || ': ' || message FROM quarantine")).scalars())


@pytest.mark.parametrize(
    "event", [REWARD, TIMING, FINISHED, UNSPECIFIED, PROGRAM, TEST, CALIBRATION, REFUSED, SHARED, STEP]
)
def test_sound_values_are_admitted(ledger: Ledger, stream: LocalStream, event: Event) -> None:
    """The samples below differ from these in one value each; a refused fit may have no line, a loss may diverge."""
    drained, reasons = take(ledger, stream, event)
    assert (drained.admitted, drained.quarantined, reasons) == (2, 0, [])


@pytest.mark.parametrize(
    ("event", "change", "message"),
    [
        (FINISHED, {"outcome": "banana"}, "outcome 'banana' is none of accepted, wrong_answer"),
        (
            FINISHED,
            {"outcome": "failed"},
            "outcome 'failed' is none of accepted, wrong_answer",
        ),  # our sandbox knows how
        (UNSPECIFIED, {"outcome": "banana"}, "outcome 'banana' is none of accepted, wrong_answer"),
        (FINISHED, {"work_id": "w"}, "work 'w' is not the work of its campaign, program, test and block"),
        (FINISHED, {"problem_id": "q"}, "program_id 'p/program' is not of problem 'q'"),
        (FINISHED, {"timings": -1}, "timings must lie in [0, 2147483648), found -1 .. -1"),
        (TIMING, {"wall_ns": -5}, "wall_ns must lie in [0, 1152921504606846976), found -5 .. -5"),
        (TIMING, {"user_ns": 2**60}, "user_ns must lie in"),
        (TIMING, {"test_id": "other/test"}, "test_id 'other/test' is not of problem 'p'"),
        (FINISHED, {"output_digest": "E" * 64}, f"output_digest '{'E' * 64}' is not a SHA-256 of 64 hex digits"),
        (SHARED, {"executed_program_id": "p/a"}, "program 'p/a' shares its executions with itself"),
        (SHARED, {"executed_program_id": "q/b"}, "executed_program_id 'q/b' is not of problem 'p'"),
        (SHARED, {"source_blob": ""}, "source_blob '' is not a SHA-256 of 64 hex digits"),
        (PROGRAM, {"source_blob": "zz"}, "source_blob 'zz' is not a SHA-256 of 64 hex digits"),
        (PROGRAM, {"program_id": "elsewhere/x"}, "program_id 'elsewhere/x' is not of problem"),
        (TEST, {"test_id": "elsewhere/1"}, "test_id 'elsewhere/1' is not of problem"),
        (TEST, {"input_blob": ""}, "input_blob '' is not a SHA-256 of 64 hex digits"),
        (TEST, {"answer_blob": "2" * 64 + "\n"}, "answer_blob"),
        (CALIBRATION, {"evidence_digest": "e" * 63}, "is not a SHA-256"),
        (CALIBRATION, {"a": float("nan")}, "a and b_ns of a usable calibration must be finite, found nan and"),
        (CALIBRATION, {"b_ns": float("-inf")}, "a and b_ns of a usable calibration must be finite"),
        (CALIBRATION, {"r2": float("inf")}, "r2 inf is not finite"),
        (STEP, {"learning_rate": float("nan")}, "learning_rate nan is not finite"),
        (REWARD, {"value": float("nan")}, "value nan is not finite"),
        (REWARD, {"value": 1.5}, "value 1.5 is not in [-1, 1]"),
        (REWARD, {"cut": "nonsense"}, "'nonsense' is not a cut"),
        (REWARD, {"q_denominator": -1}, "q_denominator must lie in"),
        (CriterionDeclared(criterion_hash="h", name="n", canonical="{}"), {}, "its text gives another hash"),
    ],
)
def test_a_bad_value_is_quarantined(
    ledger: Ledger, stream: LocalStream, event: Any, change: dict[str, Any], message: str
) -> None:
    """One column wrong: kept with its reason, and nothing of it is admitted beside the epoch's own fact."""
    drained, reasons = take(ledger, stream, dataclasses.replace(event, **change))
    assert (drained.admitted, drained.quarantined) == (1, 1)
    assert len(reasons) == 1
    assert reasons[0].startswith("bad-value: ")
    assert message in reasons[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program_id": "other/program"}, "program_id 'other/program' is not of problem 'p'"),
        ({"test_id": "q/test"}, "test_id 'q/test' is not of problem 'p'"),
        ({"wall_ns": -1}, "wall_ns must lie in [0, 1152921504606846976), found -1 .. 119"),
        ({"offset_ns": 2**60}, "offset_ns must lie in"),
        ({"block": 2**31}, "block must lie in [0, 2147483648), found 0 .. 2147483648"),
    ],
)
@pytest.mark.parametrize("location", [0, 70, 199])
def test_one_bad_row_among_many_is_found(
    ledger: Ledger, stream: LocalStream, change: dict[str, Any], message: str, location: int
) -> None:
    """Large frames are looked at in columns, in their short forms."""
    timings = attempt(1, 200)[:-1]
    take(ledger, stream, timings[0])
    timings[location] = dataclasses.replace(timings[location], **change)
    Producer(stream, "epoch-w", "test", "0").append(timings)
    assert drain(ledger, stream) == Drained(admitted=1, quarantined=1)
    with reading(ledger.engine) as connection:
        assert message in connection.execute(text("SELECT message FROM quarantine")).scalar_one()


@pytest.mark.parametrize(
    "headers", ["not json", "[1]", '"x"', '{"ce_lapversion": 1}', '{"ce_subject": null}', "[" * 5000]
)
def test_headers_that_are_no_texts_are_quarantined(ledger: Ledger, stream: LocalStream, headers: str) -> None:
    """A record that somebody else wrote into the stream's file neither stops the sink nor is lost."""
    statement = "INSERT INTO record (stream, partition, headers, payload) VALUES ('facts', 1, ?, x'00')"
    stream._connection.execute(statement, (headers,))
    drained, reasons = take(ledger, stream, REWARD)
    assert (drained.admitted, drained.quarantined) == (2, 1)
    assert reasons[0].startswith("bad-header: ")
