"""Questions that would be answered with less than was asked: each is refused in one line and writes nothing."""

from pathlib import Path

import pytest

from tests.support.lap import lap, sql, well
from tests.support.many_ledgers import make_many


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger of one campaign, `nightly`, in `.lap`."""
    home = tmp_path_factory.mktemp("refused")
    make_many(home / ".lap")
    return home


MODELS = "base, human, run-1k, run-2k"
NIGHTLY = ("--campaign", "nightly")


@pytest.mark.parametrize(
    ("args", "seen"),
    [
        (("calibrate", "--from", "nightly", "--to", "nightly"), "one campaign needs no map into itself"),
        (("calibrate", "--from", "", "--to", ""), "--from: give the id of a campaign"),
        (("calibrate", "--from", "a", "--to", " "), "--to: give the id of a campaign"),
        (
            ("calibrate", "--from", "a", "--to", "b", "--set", "calibration=none"),
            "none: nothing to fit",
        ),
        (("replay", "--flips"), "--flips compares two criteria; add --against"),
        (("replay", "--calibration-from", "main"), "--calibration-from main: no criterion here uses a calibration"),
        (
            ("sweep", "--tau", "50", "--calibration-from", "main"),
            "calibration from main: the criterion uses no calibration",
        ),
        (
            ("compare", "base", "run-1k", "--calibration-from", "main"),
            "calibration from main: the criterion uses no calibration",
        ),
        (
            ("diff", "--criterion-a", "top-30", "--criterion-b", "top-50", "--calibration-from", "main"),
            "--calibration-from main: no criterion",
        ),
        (
            ("diff", "one", "other", "--calibration-from", "main"),
            "--calibration-from main: no criterion here uses a calibration",
        ),
        (("replay", "--campaign", ""), "--campaign: give the id of a campaign, or omit the option"),
        (("sweep", "--campaign", " "), "--campaign: give the id of a campaign, or omit the option"),
        (
            ("replay", "--list", "--name", "q", "--reason", "r", "--store"),
            "omit --name, --reason, --store/--preview",
        ),
        (
            ("replay", "--list", "--preview"),
            "evaluates nothing; omit --store/--preview",
        ),
        (("replay", "--list", "--tau", "50"), "--list shows what is stored and evaluates nothing; omit --tau"),
        (("simulate", "--model", "nope"), f"--model nope: no such model in this campaign; choose one of {MODELS}"),
        (("curve", "--training", "nope"), "--training nope: no such run in this campaign, which holds no rollouts"),
        (
            ("sweep", "--optimization-limit", "none,none"),
            "--optimization-limit: a value is given twice; give each once",
        ),
        (("sweep", "--tau", "12.5"), "--tau 12.5: give whole percents from 1 to 100"),
        (("sweep", "--tau", "50", "--out", f"{'n' * 300}.csv"), "File name too long; choose another path"),
        (("import", "mercury", "loop.json", "--model", "m", "--license", "MIT"), "symbolic links"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_what_would_be_ignored_is_refused(folder: Path, args: tuple[str, ...], seen: str) -> None:
    """Exit code 2 and one line; nothing is stored."""
    loop = folder / "loop.json"
    if not loop.is_symlink():
        loop.symlink_to(loop)
    before = sql(folder / ".lap", "SELECT count(*) FROM calibration")
    done = lap(*args, cwd=folder)
    assert (done.code, done.out) == (2, ""), done.err
    assert seen in done.err
    assert done.err.count("\n") == 1
    assert sql(folder / ".lap", "SELECT count(*) FROM calibration") == before


def test_flips_between_several_taus_need_no_second_criterion(folder: Path) -> None:
    """Two rows are two questions: what `--against` says of the same two."""
    rows = well("replay", "--tau", "100", "--tau", "50", "--flips", "--json", cwd=folder).json["flips"]
    (against,) = well("replay", "--against", "top-50", "--flips", "--json", cwd=folder).json["flips"]
    assert [item["count"] for item in rows] == [against["count"]]


def test_a_criterion_without_speed_reports_that_tau_does_nothing(folder: Path) -> None:
    """The points of 50 and 10 are those of 100, and one line says why; where tau counts there is none."""
    message = (
        "the criterion has no speed requirement (quality metric zero), so tau changes nothing: every tau gives the same"
        " verdicts"
    )
    args = ("sweep", "--criterion", "rlvr", "--tau", "100,50,10")
    result = well(*args, "--json", cwd=folder).json
    assert result["warnings"] == [message]
    assert well(*args, cwd=folder).err == f"warning: {message}\n"
    by_tau = [[item["p_tau"] for item in result["points"] if item["tau"] == tau] for tau in (100, 50, 10)]
    assert by_tau[0] == by_tau[1] == by_tau[2]
    assert well("sweep", "--criterion", "rlvr", "--tau", "100", "--json", cwd=folder).json["warnings"] == []
    assert well("sweep", "--criterion", "top-30", "--tau", "50", "--json", cwd=folder).json["warnings"] == []
