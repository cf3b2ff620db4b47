"""The Python API on the demo's ledger: each method gives what the command of its name prints."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lapledger
from lapledger.replay.criteria import Criterion
from lapledger.results import table_of
from lapledger.settings import Settings
from tests.support.lap import sql, well

COUNTS = "SELECT outcome, count(*) AS runs FROM timing WHERE campaign_id = $campaign GROUP BY outcome ORDER BY outcome"


@pytest.fixture(scope="module")
def ledger(demo: Path) -> Iterator[lapledger.Ledger]:
    """The demo's ledger, open."""
    with lapledger.open(demo) as opening:
        yield opening


def test_every_public_name_is_there() -> None:
    """`__all__` is what can be read, and nothing else."""
    assert [name for name in lapledger.__all__ if not hasattr(lapledger, name)] == []
    assert set(lapledger.__all__) <= set(dir(lapledger))
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        lapledger.opne  # noqa: B018


def test_every_method_is_typed_and_documented() -> None:
    """Full annotations and a docstring on all that a notebook sees."""
    for _, method in inspect.getmembers(lapledger.Ledger, inspect.isfunction):
        if not method.__name__.startswith("_"):
            assert inspect.signature(method).return_annotation is not inspect.Signature.empty
            assert method.__doc__


def test_sql_gives_the_rows_of_the_command(ledger: lapledger.Ledger, demo: Path) -> None:
    """With a parameter; the same again, and a second query, as a query locks its own connection only."""
    first = ledger.sql(COUNTS, campaign="main")
    expected = sql(demo, COUNTS.replace("$campaign", "'main'"))
    assert [list(row.values()) for row in first] == expected
    assert first.columns == ["outcome", "runs"]
    assert list(ledger.sql(COUNTS, campaign="main")) == list(first)
    assert len(ledger.sql(COUNTS, campaign="none")) == 0


def test_a_result_shows_itself(ledger: lapledger.Ledger) -> None:
    """As text with the cut, as HTML with its text escaped, as arrow and pandas; long ones are shortened."""
    table = ledger.sql("SELECT '<b>' AS name, 1.23456::DOUBLE AS ratio, NULL AS gap, repeat('ab', 40) AS long")
    assert repr(table).splitlines() == [
        "name  ratio  gap  long",
        f"<b>   1.235  -    {'ab' * 9}...{'ab' * 9}",
        f"cut {ledger.cut}",
    ]
    html = table._repr_html_()
    assert "<td>&lt;b&gt;</td><td>1.235</td><td>-</td>" in html
    assert "<b>" not in html
    assert table.to_arrow().num_rows == len(table) == 1
    frame = table.to_pandas()
    assert frame["name"].tolist() == ["<b>"]
    assert repr(ledger.sql("SELECT * FROM range(25)")).splitlines()[-1] == f"5 more rows; cut {ledger.cut}"


def test_pandas_is_named_where_it_is_missing(ledger: lapledger.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without it is told what to install, and what works without."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setattr("lapledger.results.find_spec", lambda name: None)
    with pytest.raises(
        lapledger.UserError, match=r"needs the package pandas: pip install .lapledger\[notebook\]., or use to_arrow\(\)"
    ):
        ledger.sql("SELECT 1 AS one").to_pandas()


def test_timings_are_those_of_the_view(ledger: lapledger.Ledger, demo: Path) -> None:
    """Of the campaign `main` by default, of another by name, of one program."""
    counts = dict(map(tuple, sql(demo, "SELECT campaign_id, count(*) FROM timing GROUP BY campaign_id")))
    assert {name: len(ledger.timings(campaign=name)) for name in ("main", "recheck")} == counts
    assert len(ledger.timings()) == counts["main"]
    (program,) = {row["program_id"] for row in ledger.timings(program="pairsums/bisect_all")}
    assert program.startswith("pairsums.")
    assert all(isinstance(row["wall_ns"], int) for row in ledger.timings(program=program))


def test_rewards_and_their_traces(ledger: lapledger.Ledger, demo: Path) -> None:
    """A reward leads to the timings that `lap trace` shows, and recomputes."""
    rewards = ledger.rewards(criterion="top-50")
    assert [[row["reward_id"], row["value"]] for row in rewards] == sql(
        demo, "SELECT reward_id, value FROM verdict WHERE campaign_id = 'main' ORDER BY program_id"
    )
    assert len(ledger.rewards(criterion="none")) == 0
    first = next(iter(rewards))
    trace = ledger.trace(first["reward_id"][:16])
    shown = well("trace", first["reward_id"], "--ledger", demo, "--json").json
    assert (trace.matches, trace.differences, trace.reward["value"]) == (True, (), first["value"])
    assert [row["wall_ns"] for row in trace] == [t["wall_ns"] for test in shown["tests"] for t in test["timings"]]
    assert "recomputed: reward matches" in repr(trace)


def test_a_replay_is_that_of_the_command(ledger: lapledger.Ledger, demo: Path) -> None:
    """Estimates, verdicts and flips of two thresholds, as `lap replay --json` has them."""
    replay = ledger.replay(tau=[100, "30"])
    shown = well("replay", "--tau", 100, "--tau", 30, "--ledger", demo, "--json").json
    models = ("human", "tuned-0", "tuned-100")
    assert [(row["criterion"], row["model"]) for row in replay] == [(c, m) for c in ("p_100", "p_30") for m in models]
    estimates = [row for item in shown["criteria"] for row in item["estimates"]]
    assert [row["pass@1"] for row in replay] == [row["value"] for row in estimates]
    assert [[row["low"], row["high"]] for row in replay] == [row["interval"] for row in estimates]
    statuses = [verdict["status"] for item in shown["criteria"] for verdict in item["verdicts"]]
    assert [row["status"] for row in replay.verdicts] == statuses
    flips = [flip["program"] for flip in shown["flips"][0]["programs"]]
    assert [row["program"] for row in replay.flips] == flips
    assert replay.warnings == tuple(dict.fromkeys(w for item in shown["criteria"] for w in item["warnings"]))
    assert repr(replay).startswith("campaign main\n")


def test_a_criterion_is_a_preset_a_file_or_a_value(ledger: lapledger.Ledger, tmp_path: Path) -> None:
    """All three, with keys overridden, give the same verdicts; `model` keeps one model's rows."""
    path = tmp_path / "mine.toml"
    path.write_text("tau = 30\n")
    by_name = ledger.replay("top-30", timeout=0.5, settings={"clock": "cpu"}, model="human")
    by_file = ledger.replay(path, timeout="500ms", settings={"clock": "cpu"}, model="human")
    by_value = ledger.replay(Criterion(tau="30", timeout_ms=500, clock="cpu"), model="human")
    assert {item.judged[0].criterion.hash for item in (by_name, by_file, by_value)} == {
        by_value.judged[0].criterion.hash
    }
    assert {tuple(row["status"] for row in item.verdicts) for item in (by_name, by_file, by_value)} == {
        tuple(row["status"] for row in by_name.verdicts)
    }


def test_one_model_of_several(ledger: lapledger.Ledger) -> None:
    """Rows, verdicts, flips and the curve are its alone."""
    both, alone = (ledger.replay(tau=[100, 30], model=model) for model in (None, "tuned-0"))
    assert [row for row in both if row["model"] == "tuned-0"] == list(alone)
    names = {row["program_id"] for row in ledger.sql("SELECT program_id FROM program WHERE model = 'tuned-0'")}
    assert {row["program"] for row in alone.verdicts} == names
    assert {row["model"] for row in alone.flips} == {"tuned-0"}
    assert len(both.flips) > len(alone.flips) > 0
    assert both.plot("svg").data != alone.plot("svg").data
    assert b"human" not in alone.plot("svg").data


def test_a_result_without_rows_is_shown() -> None:
    """Its columns, no row, and the cut."""
    empty = lapledger.Table(table_of([], ("a", "b")), "c=0", visible=("a",))
    assert repr(empty) == "a\ncut c=0"
    assert "<th>a</th>" in empty._repr_html_()


def test_pictures(ledger: lapledger.Ledger, demo: Path, tmp_path: Path) -> None:
    """The curve of a replay is the picture of `lap replay --plot`, to the byte; a comparison has one too."""
    picture = ledger.replay().plot()
    picture.save(tmp_path / "mine.png")
    well("replay", "--plot", tmp_path / "theirs.png", "--ledger", demo)
    assert (tmp_path / "mine.png").read_bytes() == (tmp_path / "theirs.png").read_bytes() == picture._repr_png_()
    vector = ledger.compare("human", "human", tau=50).plot("svg")
    assert (vector._repr_svg_() or "").lstrip().startswith("<?xml")
    assert vector._repr_png_() is None


def test_a_comparison_is_that_of_the_command(ledger: lapledger.Ledger, demo: Path) -> None:
    """One row a tau and tier; a model against itself differs by 0."""
    comparison = ledger.compare("human", "human", tau=[50, 30])
    args = ("--tau", 50, "--tau", 30, "--ledger", demo, "--json")
    shown = well("compare", "human", "human", *args).json
    assert [(row["tau"], row["tier"], row["a"]) for row in comparison] == [
        (row["tau"], row["tier"], row["estimate"]["a"]) for row in shown["differences"]
    ]
    assert {row["difference"] for row in comparison} == {0.0}
    assert list(comparison.warnings) == shown["warnings"]
    two = ledger.compare("tuned-0", "tuned-100", tau=[50, 30], timeout="500ms", resamples=200, adjust="fdr_bh", seed=3)
    flags = ("--timeout", "500ms", "--resamples", 200, "--adjust", "fdr_bh", "--seed", 3)
    shown = well("compare", "tuned-0", "tuned-100", *flags, *args).json
    assert [(row["tau"], row["tier"], row["difference"], row["adjusted_p"]) for row in two] == [
        (row["tau"], row["tier"], row["estimate"]["difference"], row["adjusted_p"]) for row in shown["differences"]
    ]
    assert two.tables.differences[0].estimate.bootstrapped == tuple(shown["differences"][0]["estimate"]["bootstrapped"])
    with pytest.raises(lapledger.UserError, match=r"^calibration from main: the criterion uses no calibration"):
        ledger.compare("human", "human", calibration_from="main")


def test_an_explanation_is_that_of_the_command(ledger: lapledger.Ledger, demo: Path) -> None:
    """Under the criteria of stored rewards by default, else under the one that is given."""
    explained = ledger.why("pairsums/bisect_all")
    shown = well("why", "pairsums/bisect_all", "--ledger", demo, "--json").json
    keys = ("criterion", "status", "reason", "deciding_test", "q_lo", "factor", "note")
    assert [[row[key] for key in keys] for row in explained] == [
        [item[key] for key in keys] for item in shown["explanations"]
    ]
    assert explained.program == shown["program"]
    (second,) = ledger.why("pairsums/bisect_all", "top-30", tau=10)
    assert (second["criterion"], second["tau"], second["reward"]) == ("top-30+tau=10", "10", None)
    (third,) = ledger.why("pairsums/bisect_all", timeout="1ms")
    assert (third["criterion"], third["status"]) == ("correct+timeout_ms=1", "fail")


def test_a_cut_gives_the_same_answer_later(ledger: lapledger.Ledger, demo: Path) -> None:
    """An output's cut, given back, reads the ledger as it was; settings open it as well as a path."""
    before = next(iter(ledger.rewards()))["cut"]
    with lapledger.open(Settings(ledger=demo), at=before) as earlier:
        assert (earlier.cut, len(earlier.rewards())) == (before, 0)
        assert len(earlier.timings()) == len(ledger.timings())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ledger: ledger.sql("DROP TABLE x"), "only one SELECT"),
        (lambda ledger: ledger.sql("SELECT $x"), "parameters: x"),
        (lambda ledger: ledger.timings(campaign="none"), "no campaign 'none'"),
        (lambda ledger: ledger.timings(program="none"), "no program 'none'"),
        (lambda ledger: ledger.rewards(campaign="none"), "no campaign 'none'"),
        (lambda ledger: ledger.trace("zz"), "no reward 'zz'"),
        (lambda ledger: ledger.replay("topp"), "no criterion preset 'topp'"),
        (lambda ledger: ledger.replay(tau=200), "'200' is not allowed"),
        (lambda ledger: ledger.replay(settings={"tauu": 3}), "no criterion key 'tauu'"),
        (lambda ledger: ledger.replay(timeout=0.0001), "whole milliseconds"),
        (lambda ledger: ledger.replay(timeout=float("nan")), "a finite number of seconds"),
        (lambda ledger: ledger.replay(model="x"), "no program of model 'x'; the models are human"),
        (lambda ledger: ledger.replay(calibration="affine"), "no usable calibration"),
        (lambda ledger: ledger.compare("x", "human"), "no model matches 'x'"),
        (lambda ledger: ledger.why("none"), "no program 'none'"),
        (lambda ledger: lapledger.open("none"), "there is no ledger in none"),
        (lambda ledger: lapledger.open(ledger._folder, at="facts=x"), "cut"),
    ],
)
def test_a_mistake_is_one_line(ledger: lapledger.Ledger, call: Any, message: str) -> None:
    """A UserError that says what, where, and what to do next."""
    with pytest.raises(lapledger.UserError, match=message) as caught:
        call(ledger)
    assert len(str(caught.value).splitlines()) == 1


def test_a_closed_ledger_reports_so(demo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Closing twice is fine; nothing is printed by any of it."""
    with lapledger.open(demo) as opening:
        opening.timings()
    opening.close()
    with pytest.raises(lapledger.UserError, match="this ledger is closed"):
        opening.sql("SELECT 1")
    assert "closed" in repr(opening)
    assert capfd.readouterr() == ("", "")
