"""Named questions: the same answers whether facts lie in the tail, in segments, in merged ones, or in all of them."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.questions import queries as named
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from tests.consumers.histories import Campaign, Cell, all_facts, attempts, program_id
from tests.consumers.ledgers import append, rows
from tests.consumers.slow_loader import CELLS as CELLS_OF
from tests.consumers.slow_loader import REPETITIONS

CELLS = {
    "p": {
        "r1": (Cell(), Cell(ms=(11.0, 12.5))),
        "a": (Cell("wrong_answer"), Cell("time_limit", (2000.0,))),
        "b": (Cell("sandbox_fault"), Cell()),
    },
    "q": {"r1": (Cell(), Cell()), "c": (Cell(ms=(7.0, 8.0, 9.0)), Cell())},
}
FIRST = Campaign("one", CELLS, surplus={("p", "r1", 0): Cell(ms=(1.0,)), ("p", "b", 0): Cell(ms=(3.0,))})
SECOND = replace(FIRST, name="two", surplus={})
PROGRAMS = [program_id("p", name) for name in ("r1", "a", "b")] + [program_id("q", name) for name in ("r1", "c")]


@pytest.fixture(params=["tail", "sealed", "half", "merged"])
def ledger(request: pytest.FixtureRequest, both: Ledger) -> Ledger:
    """Two campaigns with wrong, slow, surplus and failed attempts, the second without its last two attempts."""
    append(both, "epoch-1", all_facts(FIRST))
    if request.param != "tail":
        seal(both)
    late = [event for events in list(attempts(SECOND))[-2:] for event in events]
    append(both, "epoch-2", [event for event in all_facts(SECOND) if event not in late])
    if request.param in ("sealed", "merged"):
        seal(both)
    if request.param == "merged":
        compact(both, 0)
    return both


def answers(ledger: Ledger) -> dict[str, Any]:
    """What every named question says."""
    item = {"campaign": "one"}
    with closing(Questions(ledger)) as questions:
        return {
            "campaigns": [(row["campaign_id"], row["works"], row["done"]) for row in questions.rows(named.CAMPAIGNS)],
            "attempts": questions.rows(named.ATTEMPTS, **item),
            "done": len(questions.rows(named.DONE_WORKS, campaign="two")),
            "outcomes": [(row["test_id"], row["outcome"]) for row in questions.rows(named.OUTCOMES, **item)],
            "cells": [tuple(row.values())[:4] for row in questions.rows(CELLS_OF, **item, programs=PROGRAMS)],
            "repetitions": sorted((row["wall_ns"], row["r"]) for row in questions.rows(REPETITIONS, **item)),
            "durations": sorted(row["wall_ns"] for row in questions.rows(named.DURATIONS)),
            "timings": [row["wall_ns"] for row in questions.rows(named.ATTEMPT_TIMINGS, **item, program=PROGRAMS[4])],
        }


MS = 1_000_000


def test_answers_do_not_depend_on_where_facts_lie(ledger: Ledger) -> None:
    """Worked by hand: ten works each; a fault is no outcome, and a later attempt counts only where it is the first."""
    result = answers(ledger)
    assert result["campaigns"] == [("one", 10, 10), ("two", 10, 7)]
    assert result["attempts"] == [{"accepted": 10, "surplus": 1, "faults": 1}]
    assert result["done"] == 7
    assert [outcome for _, outcome in result["outcomes"]].count("accepted") == 8
    assert len(result["cells"]) == 10
    assert ("p", 0, 0, "wrong_answer") in result["cells"] or ("p", 1, 0, "wrong_answer") in result["cells"]
    walls = [10.0] * 6 + [11.0, 12.5, 2000.0, 3.0, 7.0, 8.0, 9.0]
    assert sorted(wall for wall, _ in result["repetitions"]) == sorted(round(wall * MS) for wall in walls)
    assert result["timings"] == [7 * MS, 8 * MS, 9 * MS, 10 * MS]
    assert len(result["durations"]) == 10


def test_the_count_of_done_works_is_that_of_accepted_attempts(ledger: Ledger) -> None:
    """As the view `execution` marks them."""
    with closing(Questions(ledger)) as questions:
        counted = questions.rows(
            "SELECT campaign_id, count(*) AS n FROM execution WHERE accepted GROUP BY 1 ORDER BY campaign_id"
        )
        assert [(row["campaign_id"], row["n"]) for row in counted] == [
            (row["campaign_id"], row["done"]) for row in questions.rows(named.CAMPAIGNS)
        ]


def test_work_views_keep_campaigns_apart(ledger: Ledger) -> None:
    """Every work once, with the outcome of its own campaign."""
    with closing(Questions(ledger)) as questions:
        works = questions.rows(
            "SELECT campaign_id, count(*) AS n, count(outcome) AS done FROM work GROUP BY 1 ORDER BY 1"
        )
        assert [tuple(row.values()) for row in works] == [("one", 10, 10), ("two", 10, 7)]


def test_no_segment_is_read_before_a_question_needs_it(ledger: Ledger) -> None:
    """Spoilt timings do not disturb a question about campaigns."""
    for path in (ledger.root / "segments").glob("timing.measured.v1/*.parquet"):
        path.unlink()
    with closing(Questions(ledger)) as questions:
        assert len(questions.rows(named.CAMPAIGNS)) == 2
        assert questions.rows(named.ATTEMPTS, campaign="one")[0]["accepted"] == 10
    assert rows(ledger, "SELECT count(*) FROM stream_position") == [(13,)]


def test_no_progress_is_drawn_into_an_answer(ledger: Ledger) -> None:
    """The database would draw a bar on stdout after two seconds, in the middle of somebody's JSON."""
    with closing(Questions(ledger)) as questions:
        assert questions.rows("SELECT current_setting('enable_progress_bar') AS drawn") == [{"drawn": False}]
