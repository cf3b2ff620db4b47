"""Measurements read in columns equal those read row by row, wherever the facts lie and in whatever order they came."""

import dataclasses
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import Event, ExecutionFinished, ProgramAdded, TimingMeasured
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.columns import Columns, Wanted
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.replay.errors import ReplayError
from lapledger.replay.loading import executed_by, false_shares, load
from lapledger.replay.measurements import ABSENT, CLOCKS, Outcome, ProblemMeasurements
from tests.consumers.histories import Campaign, Cell, attempts, corpus_facts, opening, program_id, requests, shares
from tests.consumers.ledgers import append, ledger_with
from tests.consumers.slow_loader import load_slowly

OUTCOMES = ("accepted",) * 6 + ("wrong_answer", "time_limit", "sandbox_fault", "run_time_error")
MS = 1_000_000


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger to copy."""
    made = create_ledger(tmp_path_factory.mktemp("template") / "ledger", "identity-0", "now")
    made.close()
    return made.root


cells = st.builds(Cell, st.sampled_from(OUTCOMES), st.lists(st.integers(1, 9).map(float), max_size=3).map(tuple))


@st.composite
def campaigns(draw: st.DrawFn, name: str) -> Campaign:
    """Up to four problems of up to three programs on two tests, some works run twice."""
    problems = [f"problem-{letter}" for letter in "abcd"[: draw(st.integers(1, 4))]]
    result = {
        p: {n: (draw(cells), draw(cells)) for n in ("r1", "r2", "x")[: draw(st.integers(1, 3))]} for p in problems
    }
    pairs = st.tuples(st.sampled_from(problems), st.sampled_from(["y1", "y2"]))
    twins = draw(st.dictionaries(pairs, st.sampled_from(["r1", "x"]), max_size=3))
    twins = {twin: name for twin, name in twins.items() if name in result[twin[0]]}
    locations = st.tuples(st.sampled_from(problems), st.sampled_from(["r1", "x"]), st.integers(0, 1))
    return Campaign(name, result, surplus=draw(st.dictionaries(locations, cells, max_size=3)), twins=twins)


@st.composite
def histories(draw: st.DrawFn) -> list[list[Event]]:
    """Attempts of two campaigns in any order; warm-ups, repetitions out of order, attempts that never finished."""
    first, second = draw(campaigns("main")), draw(campaigns("other"))
    seen = [
        [*corpus_facts(campaign), *shares(campaign), opening(campaign), *requests(campaign)]
        for campaign in (first, second)
    ]
    runs = [draw(attempt(events)) for campaign in (first, second) for events in attempts(campaign)]
    return [*seen, *draw(st.permutations(runs))]


@st.composite
def attempt(draw: st.DrawFn, events: list[Event]) -> list[Event]:
    """One attempt as it may arrive."""
    *timings, finished = events
    assert isinstance(finished, ExecutionFinished)
    changed: list[Event] = [
        dataclasses.replace(timing, warmup=draw(st.booleans()), startup_ns=draw(st.integers(0, 3)))
        for timing in timings
        if isinstance(timing, TimingMeasured)
    ]
    if draw(st.integers(0, 9)) == 0:
        changed.reverse()
    return changed if draw(st.integers(0, 9)) == 0 else [*changed, finished]


def assert_same(result: ProblemMeasurements, expected: ProblemMeasurements) -> None:
    """Every field is equal, with the same types."""
    for field in dataclasses.fields(result):
        ours, theirs = getattr(result, field.name), getattr(expected, field.name)
        pairs = [(ours, theirs)]
        if field.name == "tests":
            pairs = [(getattr(ours, item.name), getattr(theirs, item.name)) for item in dataclasses.fields(ours)]
        for a, b in pairs:
            assert np.array_equal(a, b), field.name
            assert np.asarray(a).dtype == np.asarray(b).dtype, field.name


def assert_loads(ledger: Ledger, cut: Cut | None = None) -> None:
    """Both ways of reading both campaigns give the same measurements and digests."""
    with closing(Questions(ledger, cut)) as questions:
        for campaign in ("main", "other"):
            snapshot, (problems, rows) = load(questions, campaign), load_slowly(questions, campaign)
            assert len(snapshot.problems) == len(problems)
            for result, expected in zip(snapshot.problems, problems, strict=True):
                assert_same(result, expected)
            assert dict(snapshot.rows) == rows


@given(history=histories(), data=st.data())
@settings(max_examples=12, deadline=None)
def test_columns_report_what_rows_report(
    template: Path, tmp_path_factory: pytest.TempPathFactory, history: list[list[Event]], data: st.DataObject
) -> None:
    """The oracle reads through SQL and dictionaries. Facts lie in the tail, in segments, in merged ones, or in all."""
    root = tmp_path_factory.mktemp("history") / "ledger"
    shutil.copytree(template, root)
    with closing(open_ledger(root)) as ledger:
        append(ledger, "epoch-corpus", *history[:2])
        cuts = []
        for number, events in enumerate(history[2:]):
            append(ledger, f"epoch-{number}", events)
            cuts.append(ledger.cut())
            if data.draw(st.integers(0, 7)) == 0:
                seal(ledger)
        assert_loads(ledger)
        seal(ledger)
        compact(ledger, 0)
        assert_loads(ledger)
        assert_loads(ledger, data.draw(st.sampled_from(cuts)))


def small() -> Campaign:
    """Two references and a candidate on two tests of each of three problems."""
    cell = Cell(ms=(5.0, 7.0))
    return Campaign("main", {p: dict.fromkeys(("r1", "r2", "x"), (cell, cell)) for p in ("a", "b", "c")})


def facts(campaign: Campaign) -> list[Event]:
    """All of it in order."""
    run = [event for events in attempts(campaign) for event in events]
    return [*corpus_facts(campaign), opening(campaign), *requests(campaign), *run]


def test_the_first_report_of_a_program_counts(tmp_path: Path) -> None:
    """A second `program.added` of the same id, with another model, changes nothing."""
    seen = facts(small())
    (first,) = [e for e in seen if isinstance(e, ProgramAdded) and e.program_id == program_id("a", "x")]
    with closing(ledger_with(tmp_path / "ledger", seen)) as ledger, closing(Questions(ledger)) as questions:
        append(ledger, "epoch-2", [dataclasses.replace(first, model="somebody")])
        assert set(load(questions).problems[0].models) == {"human"}


def test_digests_are_read_when_they_are_requested_for(tmp_path: Path) -> None:
    """Rows are found problem by problem, an unknown program is no row, and their number is that of the programs."""
    with closing(ledger_with(tmp_path / "ledger", facts(small()))) as ledger, closing(Questions(ledger)) as questions:
        rows = load(questions).rows
        assert len(rows) == 9
        assert len(rows[program_id("b", "x")]) == 64
        with pytest.raises(KeyError):
            rows["a/nobody"]


def test_a_clock_that_was_not_read_refuses_to_be_requested(tmp_path: Path) -> None:
    """With the wall clock alone everything but the other clocks is as it was; those say so, whatever was recorded."""
    with closing(ledger_with(tmp_path / "ledger", facts(small()))) as ledger, closing(Questions(ledger)) as questions:
        complete, part = (load(questions, clocks=clocks).problems[0] for clocks in (CLOCKS, frozenset(["wall"])))
        unread = {"cpu_ns": complete.cpu_ns, "memory_bytes": complete.memory_bytes, "clocks": CLOCKS}
        assert_same(dataclasses.replace(part, **unread), complete)
        assert complete.on_clock("cpu").max() > 0
        for clock in ("cpu", "memory"):
            with pytest.raises(ReplayError, match=f"the clock '{clock}' was not read"):
                part.on_clock(clock)


def test_a_spoilt_segment_is_reported_in_one_line(tmp_path: Path) -> None:
    """A segment of timings that is no Parquet is named; nothing else is."""
    with closing(ledger_with(tmp_path / "ledger", facts(small()))) as ledger:
        seal(ledger)
        (path,) = (tmp_path / "ledger" / "segments" / "timing.measured.v1").glob("*.parquet")
        path.chmod(0o644)
        path.write_bytes(b"spoilt")
        with closing(Questions(ledger)) as questions, pytest.raises(Fault, match=path.name):
            load(questions)


def test_only_row_groups_of_wanted_problems_are_read(tmp_path: Path) -> None:
    """Rows of the problems asked for and of no other; a problem without rows has none."""
    with closing(ledger_with(tmp_path / "ledger", facts(small()))) as ledger:
        seal(ledger)
        wanted = Wanted("timing.measured", ("wall_ns", "campaign_id"), dictionary_columns=("campaign_id",))
        with closing(Columns(ledger, wanted, ledger.cut())) as columns:
            result = columns.of(["b", "nobody"])
        assert set(result) == {"b", "nobody"}
        assert result["nobody"] == []
        assert sum(len(batch) for batch in result["b"]) == 3 * 2 * 2


def test_what_is_not_known_stays_unknown(tmp_path: Path) -> None:
    """A program without a run is missing: no duration, no limit."""
    campaign = small()
    seen = [
        e for e in facts(campaign) if getattr(e, "program_id", "") != program_id("c", "x") or "Added" in str(type(e))
    ]
    with closing(ledger_with(tmp_path / "ledger", seen)) as ledger, closing(Questions(ledger)) as questions:
        m = load(questions).problems[2]
        row = m.row(program_id("c", "x"))
        assert set(m.outcome[row].tolist()) == {Outcome.MISSING}
        assert set(m.wall_ns[row].ravel().tolist()) == set(m.limit_ns[row].tolist()) == {ABSENT}


def twin(**changes: str) -> list[Event]:
    """The facts of `small` with `y`, a twin of `x` on problem a that is not run; `changes` alter the fact of it."""
    seen = small()
    campaign = Campaign("main", seen.cells, twins={("a", "y"): "x"})
    (share,) = shares(campaign)
    run = [event for events in attempts(campaign) for event in events]
    fact = dataclasses.replace(share, **changes)
    return [*corpus_facts(campaign), fact, opening(campaign), *requests(campaign), *run]


def test_a_program_that_shares_executions_has_those_of_the_one_that_was_run(tmp_path: Path) -> None:
    """`y` has each duration of `x`, 5 and 7 ms on each of two tests, and a row of its own: it is a sample more."""
    with closing(ledger_with(tmp_path / "ledger", twin())) as ledger, closing(Questions(ledger)) as questions:
        snapshot = load(questions)
        m = snapshot.problems[0]
        x, y = (program_id("a", name) for name in "xy")
        assert len(m.programs) == 4
        assert m.wall_ns[m.row(y)].tolist() == [[5 * MS, 7 * MS]] * 2
        assert m.outcome[m.row(y)].tolist() == [Outcome.OK] * 2
        assert m.duplicate[m.row(y)] == m.duplicate[m.row(x)]
        assert snapshot.rows[y] != snapshot.rows[x]  # each names its own program
        assert executed_by(questions, "main", y) == executed_by(questions, "main", x) == x
        assert false_shares(questions) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"source_blob": blob_digest(b"other")},
        {"executed_program_id": program_id("a", "r1")},
        {"executed_program_id": "a/nobody"},
        {"campaign_id": "other"},
        {"program_id": program_id("a", "x")},
    ],
)
def test_a_false_share_counts_for_nobody(tmp_path: Path, changes: dict[str, str]) -> None:
    """Another source, nobody, another campaign, or a program that was run itself: `y` stays without an outcome."""
    seen = twin(**changes) if "program_id" not in changes else twin(**changes, executed_program_id=program_id("a", "y"))
    with closing(ledger_with(tmp_path / "ledger", seen)) as ledger, closing(Questions(ledger)) as questions:
        m = load(questions).problems[0]
        y, x = (program_id("a", name) for name in "yx")
        assert m.outcome[m.row(y)].tolist() == [Outcome.MISSING] * 2
        assert m.outcome[m.row(x)].tolist() == [Outcome.OK] * 2
        assert executed_by(questions, "main", y) == y
        assert executed_by(questions, "main", x) == x
        wrong = bool({"source_blob", "executed_program_id"} & changes.keys())
        assert [line.split(" in ")[0] for line in false_shares(questions)] == ([y] if wrong else [])
