"""How each kind of row is put into columns: titles, texts and what sorting compares. No terminal toolkit here."""

from collections.abc import Sequence

from lapledger.tui.grid import Column, Grid, make_grid
from lapledger.tui.rows import CampaignRow, Details, ProblemRow, ProgramRow, TestRow

VERDICT_TONES = {"pass": "green", "fail": "red", "undecided": "yellow"}
OUTCOME_TONES = {"ok": "green", "missing": "yellow"}
LONGEST = 400
"""Most cells of the last column, whose text is a sentence."""


CAMPAIGN: tuple[Column[CampaignRow], ...] = (
    Column("campaign", lambda row: row.campaign),
    Column("state", lambda row: row.state),
    Column("problems", lambda row: str(row.problems), lambda row: row.problems, right=True),
    Column("programs", lambda row: str(row.programs), lambda row: row.programs, right=True),
    Column("references", lambda row: str(row.references), lambda row: row.references, right=True),
    Column("done", lambda row: f"{row.done}/{row.works}", lambda row: row.done / max(row.works, 1), right=True),
)

PROBLEM: tuple[Column[ProblemRow], ...] = (
    Column("problem", lambda row: row.problem),
    Column("pass", lambda row: str(row.passed), lambda row: row.passed, right=True),
    Column("fail", lambda row: str(row.failed), lambda row: row.failed, right=True),
    Column("undecided", lambda row: str(row.undecided), lambda row: row.undecided, right=True),
    Column("references", lambda row: str(row.references), lambda row: row.references, right=True),
    Column("tests", lambda row: str(row.tests), lambda row: row.tests, right=True),
)

PROGRAM: tuple[Column[ProgramRow], ...] = (
    Column("verdict", lambda row: row.verdict, tones=VERDICT_TONES),
    Column("program", lambda row: row.program.removeprefix(f"{row.problem}/")),
    Column("percentile", lambda row: span(row.percentile, 1), lambda row: _end(row.percentile), right=True),
    Column("q", lambda row: span(row.q, 4), lambda row: _end(row.q), right=True),
    Column("label", lambda row: row.label),
    Column("model", lambda row: row.model),
    Column("median ms", lambda row: milliseconds(row.median_ns), lambda row: row.median_ns, right=True),
    Column("references", lambda row: str(row.references), lambda row: row.references, right=True),
    Column("reason", lambda row: row.reason, widest=LONGEST),
)

PROBLEM_OF_PROGRAM: Column[ProgramRow] = Column("problem", lambda row: row.problem)

TEST: tuple[Column[TestRow], ...] = (
    Column("outcome", lambda row: row.outcome, tones=OUTCOME_TONES),
    Column("test", lambda row: row.test),
    Column("duration ms", lambda row: milliseconds(row.duration_ns), lambda row: row.duration_ns, right=True),
    Column("percentile", lambda row: span(row.percentile, 1), lambda row: _end(row.percentile), right=True),
    Column("kinds", lambda row: row.kinds),
    Column("runs, ms", lambda row: " ".join(map(milliseconds, row.repetitions_ns)), widest=LONGEST),
)


def campaign_grid(rows: Sequence[CampaignRow]) -> Grid:
    """Campaigns, keyed by id."""
    return make_grid(CAMPAIGN, rows, lambda row: row.campaign)


def problem_grid(rows: Sequence[ProblemRow]) -> Grid:
    """Problems, keyed by id."""
    return make_grid(PROBLEM, rows, lambda row: row.problem)


def program_grid(rows: Sequence[ProgramRow], *, with_problem: bool = False) -> Grid:
    """Programs, keyed by problem id and program id with a line break between; their problem is a column on demand."""
    columns = (*PROGRAM[:2], PROBLEM_OF_PROGRAM, *PROGRAM[2:]) if with_problem else PROGRAM
    return make_grid(columns, rows, lambda row: f"{row.problem}\n{row.program}")


def test_grid(rows: Sequence[TestRow]) -> Grid:
    """The tests of one program, keyed by test id."""
    return make_grid(TEST, rows, lambda row: row.test)


def detail_lines(details: Details) -> list[str]:
    """The summary of a program above its tests, one line each."""
    row, explanation = details.row, details.explanation
    pool = "member of the pool" if details.reference else "not of the pool"
    lines = [
        f"{row.verdict}: {row.reason}",
        f"q {span(row.q, 4)}, mean percentile {span(row.percentile, 1)}, ranked by {row.references} references",
        f"claimed {row.label or '-'}, made by {row.model}, {pool}, median {milliseconds(row.median_ns)} ms",
        explanation.note,
    ]
    if explanation.deciding_test:
        lines.append(f"deciding test: {explanation.deciding_test}")
    if explanation.distance_points is not None:
        lines.append(f"mean percentile minus the largest that passes: {explanation.distance_points:+.2f} points")
    return lines


def span(pair: tuple[float, float] | None, digits: int) -> str:
    """A number, or the interval that it lies in, or a dash where it is undefined."""
    if pair is None:
        return "-"
    low, high = (f"{value:.{digits}f}" for value in pair)
    return low if pair[0] == pair[1] else f"{low}..{high}"


def milliseconds(duration_ns: int | None) -> str:
    """A duration in ms with three decimals, or a dash."""
    return "-" if duration_ns is None else f"{duration_ns / 1e6:.3f}"


def _end(pair: tuple[float, float] | None) -> float | None:
    return None if pair is None else pair[1]
