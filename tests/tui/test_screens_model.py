"""The rows of the screens hold what the kernel says, and are made without a terminal toolkit."""

import statistics
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import Criterion, preset
from lapledger.replay.errors import ReplayError
from lapledger.replay.measurements import Outcome
from lapledger.tui.columns import detail_lines, milliseconds, program_grid, span
from lapledger.tui.grid import Column, make_grid, plain, width
from lapledger.tui.question import Question
from lapledger.tui.rows import details, passed_medians, problem_rows, program_rows
from lapledger.tui.source import read_view
from tests.support.screen_ledgers import (
    MODELS,
    MS,
    REFERENCES,
    STEPS,
    Program,
    append,
    make_campaign,
    problem_facts,
    program_id,
)

CORRECT = Question("correct", Criterion())


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("model") / "ledger"
    make_campaign(root, (*REFERENCES, *MODELS))
    return root


@pytest.fixture(scope="module")
def judged(root):
    return read_view(root, None, "nightly", CORRECT).judged


def by_name(rows):
    return {row.program.split("/")[1].rpartition(".")[0]: row for row in rows}


def test_a_program_row_holds_the_published_figures(judged):
    """Expected by hand: 25 ms lies between the second and third of 10, 20, 30, 40 ms, so k = 4 of 2 * 4 everywhere."""
    rows = by_name(program_rows(judged.under(CORRECT.with_tau("50").criterion, "top-50"), STEPS))
    middle = rows["middle"]
    assert (middle.verdict, middle.percentile, middle.q) == ("pass", (50.0, 50.0), (0.5, 0.5))
    assert (middle.label, middle.model, middle.median_ns, middle.references) == ("accepted", "model", 25 * MS, 4)
    assert middle.reason == "q 1/2 = 0.5 <= 0.5"


def test_a_reference_is_ranked_without_itself(judged):
    """Expected by hand: 40 ms scores 1 among the other three, whose own scores are 0, 1/2, 1: q = (2 * 2 + 1) / 6."""
    rows = by_name(program_rows(judged, STEPS))
    assert (rows["ref10"].percentile, rows["ref10"].references) == ((0.0, 0.0), 3)
    assert (rows["ref40"].percentile, rows["ref40"].q) == ((100.0, 100.0), (5 / 6, 5 / 6))


def test_a_wrong_program_fails_and_an_unfinished_one_is_undecided(judged):
    rows = by_name(program_rows(judged, STEPS))
    assert (rows["wrong"].verdict, rows["wrong"].reason) == ("fail", f"wrong_answer on {STEPS}/t0")
    assert (rows["halfway"].verdict, rows["halfway"].reason) == ("undecided", "missing 1 test")


def test_what_was_never_seen_is_an_interval(judged):
    """Expected by hand: 0 on the test that ran (5 ms), anything from 0 to 100 on the other: the mean is 0 to 50."""
    assert by_name(program_rows(judged, STEPS))["halfway"].percentile == (0.0, 50.0)


def test_problem_rows_count_candidates_by_verdict(judged):
    """Expected by hand: all correct programs pass p_100, one is wrong, one has not finished."""
    (row,) = problem_rows(judged)
    assert (row.problem, row.passed, row.failed, row.undecided) == (STEPS, 5, 1, 1)
    assert (row.references, row.tests) == (4, 2)


def test_another_tau_needs_no_ledger(root, judged):
    """Judging again from the snapshot gives exactly what a fresh read gives under that criterion."""
    again = judged.under(preset("top-30"), "top-30")
    fresh = read_view(root, None, "nightly", Question("top-30", preset("top-30"))).judged
    assert program_rows(again) == program_rows(fresh)
    assert by_name(program_rows(again))["middle"].verdict == "fail"


def test_details_name_tests_and_what_would_flip(judged):
    """Expected by hand: at p_50 `middle` passes with q = 1/2; 15 ms more on one test give k = 7 and 4 of 8,
    the mean 11/16 > 2/3 puts a third reference before it."""
    result = details(judged.under(CORRECT.with_tau("50").criterion, "top-50"), STEPS, program_id(STEPS, "middle"))
    assert [(t.test, t.outcome, t.duration_ns, t.percentile) for t in result.tests] == [
        (f"{STEPS}/t{location}", "ok", 25 * MS, (50.0, 50.0)) for location in (0, 1)
    ]
    assert result.tests[0].kinds == "original, correctness, optimization"
    assert result.tests[1].repetitions_ns == (25 * MS,)
    assert not result.reference
    assert (
        detail_lines(result)[3] == result.explanation.note == f"15000000 ns slower on {STEPS}/t0 would flip the verdict"
    )


def test_a_view_at_an_old_cut_stays_as_it_was(tmp_path):
    """The same cut gives the same rows, whatever was admitted since; the newest cut holds both campaigns."""
    first = make_campaign(tmp_path, REFERENCES)
    make_campaign(tmp_path, MODELS, campaign="weekly", problem="other.0123456789ab")
    old, new = read_view(tmp_path, first, None, CORRECT), read_view(tmp_path, None, None, CORRECT)
    assert old.cut == first
    assert [row.campaign for row in old.campaigns] == ["nightly"]
    assert [(row.campaign, row.done, row.works) for row in new.campaigns] == [("nightly", 8, 8), ("weekly", 5, 6)]


def test_an_empty_ledger_reports_what_to_do_next(tmp_path):
    append(tmp_path, [])
    assert "lap import icpc" in read_view(tmp_path, None, None, CORRECT).hint()
    append(tmp_path, list(problem_facts(STEPS, REFERENCES, 1)))
    assert read_view(tmp_path, None, None, CORRECT).hint() == (
        "1 problem and no campaign yet: run their programs with `lap run`."
    )


def test_failures_of_the_ledger_are_of_the_two_known_kinds(tmp_path, judged):
    with pytest.raises(UserError, match="no ledger"):
        read_view(tmp_path / "nowhere", None, None, CORRECT)
    with pytest.raises(ReplayError, match="no program"):
        judged.of(STEPS)[0].row("nobody")


def test_a_calibrated_criterion_without_a_fit_is_refused(root):
    with pytest.raises(UserError, match="no usable calibration"):
        read_view(root, None, "nightly", Question("mine", Criterion(calibration="affine")))


def test_a_question_names_what_was_switched():
    """Switching to the criterion's own value is no switch: the name and the hash stay."""
    question = Question("top-30", preset("top-30"))
    assert question.with_tau("50").description().startswith("p_50 leaderboard, top-30+tau=50 ")
    assert question.with_tau("50").with_tau("30").description() == question.description()
    assert question.with_next_reading().criterion == preset("per-test-top-30")
    assert question.with_next_reading().with_next_reading().criterion == question.base


def test_the_reading_switches_only_to_what_has_a_meaning():
    """From any other environment to the leaderboard; a total in ns is no share of 100 and stays there."""
    assert Question("pre", preset("timeout-2s")).with_next_reading().criterion.reading == "leaderboard"
    assert Question("mine", Criterion(statistic="total")).with_next_reading().criterion.reading == "leaderboard"


@given(st.lists(st.lists(st.integers(-1, 9), min_size=3, max_size=3), min_size=1, max_size=5))
def test_medians_agree_with_the_standard_library(durations):
    """Median over the tests that were passed, rounded down; -1 where none was."""
    outcome = np.where(np.arange(3) == 2, Outcome.WRONG_ANSWER, Outcome.OK)
    table = np.array(durations, dtype=np.int64)
    result = passed_medians(np.broadcast_to(outcome, table.shape).astype(np.int8), table)
    known = [[d for d in row[:2] if d >= 0] for row in durations]
    assert result.tolist() == [int(statistics.median(row)) if row else -1 for row in known]


ROWS = [("b", 2.0), ("a", None), ("c", 1.0), ("<[bold]>", 3.0)]
GRID = make_grid(
    (Column("name", lambda r: r[0]), Column("n", lambda r: str(r[1]), lambda r: r[1])), ROWS, lambda r: r[0]
)


def test_orders_put_rows_without_a_value_last():
    names = [r[0] for r in ROWS]
    assert [names[i] for i in GRID.order(column=1)] == ["c", "b", "<[bold]>", "a"]
    assert [names[i] for i in GRID.order(column=1, descending=True)] == ["<[bold]>", "b", "c", "a"]
    assert GRID.order() == [0, 1, 2, 3]
    assert GRID.order(descending=True) == [3, 2, 1, 0]


def test_a_filter_keeps_rows_that_hold_every_text():
    assert GRID.order("[BOLD]") == [3]
    assert GRID.order("a none") == [1]
    assert GRID.order("a 2.0") == []


@given(st.text(max_size=20))
def test_every_text_becomes_one_printable_line(text):
    """No control character, direction mark or line break reaches the terminal; ordinary text is unchanged."""
    assert plain(text).isprintable()
    assert len(plain(text)) == len(text)
    assert plain(text) == text or not text.isprintable()


def test_widths_count_terminal_cells():
    """Wide letters take two cells, combining marks none (Unicode's East Asian width)."""
    assert [width(t) for t in ("abc", "石", "é", "e\u0301")] == [3, 2, 1, 1]
    assert GRID.widths == (len("<[bold]>"), len("None"))


def test_numbers_are_shown_as_a_value_an_interval_or_a_dash():
    assert [span(p, 1) for p in (None, (1.0, 1.0), (0.0, 50.0))] == ["-", "1.0", "0.0..50.0"]
    assert [milliseconds(d) for d in (None, 1_234_567)] == ["-", "1.235"]


def test_program_names_are_unique_keys_across_problems(judged):
    grid = program_grid(program_rows(judged), with_problem=True)
    assert len(set(grid.keys)) == len(grid.keys) == 7
    assert [c.title for c in grid.columns][:3] == ["verdict", "program", "problem"]


def test_the_query_core_imports_no_terminal_toolkit():
    """And the application is drawn before the arrays and the database are imported."""
    code = "import sys, lapledger.tui.source, lapledger.tui.columns; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys, lapledger.tui.app; sys.exit(bool({'numpy', 'duckdb', 'sqlalchemy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_program_with_markup_in_its_name_is_kept_as_text(tmp_path):
    make_campaign(tmp_path, (*REFERENCES, Program("[red]x\x1b[2J", (1, 1))))
    judged = read_view(tmp_path, None, "nightly", CORRECT).judged
    names = [cells[1] for cells in program_grid(program_rows(judged)).cells]
    assert any(name.startswith("[red]x\N{REPLACEMENT CHARACTER}[2J") for name in names)
