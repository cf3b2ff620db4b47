"""Real contest packages through the real path: each program gets the verdict that its judges sorted it by.

Of each folder the first programs are run, on every test: thirty more would say the same. The files are third-party data
beside the checkout, described in its README; the tests are skipped where they are not.
"""

import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.lap import sql, well

pytestmark = pytest.mark.realdata

OUTCOMES = """
SELECT p.label || '/' || p.name, list_sort(list(DISTINCT w.outcome)), count(*), count(w.outcome)
FROM work w JOIN program p USING (program_id)
JOIN problem b ON b.problem_id = w.problem_id WHERE b.slug = '{slug}' GROUP BY ALL
"""
# Accepted programs need 0.15 s of processor time at most, those in time_limit_exceeded more than 10 s on many tests:
# the limit keeps a factor of ten to the first on a busy machine, and the run of the others short.
LIMIT = 1.5
# Most programs of the scoring packages are slow somewhere; of four packages at hand the two quick ones are run. Their
# accepted programs need about 1 s at most, so that a low limit only spares time.
SCORING = {"pickleclicker": 3, "virus3": 3}
TESTS = """
SELECT p.label || '/' || p.name, substr(w.test_id, length(w.problem_id) + 2), w.outcome
FROM work w JOIN program p USING (program_id) JOIN problem b ON b.problem_id = w.problem_id WHERE b.slug = '{slug}'
"""


@pytest.fixture(scope="module")
def icpc(real_data: Path) -> Path:
    """The folder of packages."""
    return real_data / "icpc"


def with_first_programs(package: Path, folder: Path, **count: int) -> Path:
    """A copy of a package that has, of each folder of submissions, the first program, or as many as `count` says."""
    copy = Path(shutil.copytree(package, folder / package.name))
    for label in (copy / "submissions").iterdir():
        programs = sorted(label.iterdir()) if label.is_dir() else []
        for program in programs[count.get(label.name, 1) :]:
            program.unlink()
    return copy


@pytest.fixture(scope="module")
def plain(icpc: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with every outcome of the two pass-fail packages, of three programs each."""
    home = tmp_path_factory.mktemp("plain")
    root = home / "ledger"
    packages = [
        with_first_programs(icpc / slug, home, accepted=2) for slug in ("adolescentarchitecture2", "datepicker")
    ]
    well("ledger", "init", "--ledger", root)
    well("import", "icpc", *packages, "--ledger", root)
    well("run", "--limit", LIMIT, "--slots", 2, "--ledger", root)
    return root


def verdicts(ledger: Path, slug: str, tests: int) -> dict[str, set[str]]:
    """Folder and name of each program -> the outcomes that it shows; {"accepted"} when every test passes."""
    rows = sql(ledger, OUTCOMES.format(slug=slug))
    assert {(works, done) for *_, works, done in rows} == {(tests, tests)}
    return {name: set(outcomes) for name, outcomes, *_ in rows}


def test_adolescent_architecture_gives_the_verdicts_of_its_folders(plain: Path) -> None:
    """Accepted programs pass all 74 tests; the one in wrong_answer fails some, each time by a wrong answer."""
    assert verdicts(plain, "adolescentarchitecture2", 74) == {
        "accepted/erik.py": {"accepted"},
        "accepted/paul-decimal.py": {"accepted"},
        "wrong_answer/erik-wrong-grundy-0.py": {"accepted", "wrong_answer"},
    }


def test_date_picker_gives_the_verdicts_of_its_folders(plain: Path) -> None:
    """Accepted programs pass all 85 tests; the slow one gives no wrong answer and runs out of time."""
    assert verdicts(plain, "datepicker", 85) == {
        "accepted/maarten-bitmask-days-sort-hours.py": {"accepted"},
        "accepted/maarten-product-days-sort-hours.py": {"accepted"},
        "time_limit_exceeded/maarten-all-combinations.py": {"accepted", "time_limit"},
    }


def test_replay_judges_the_same_programs_correct(plain: Path) -> None:
    """`lap replay` passes the four programs labelled accepted and no other; pass@1 is 2/3 on both problems."""
    labels = dict(sql(plain, "SELECT program_id, label FROM program"))
    answer = well("replay", "--tau", 100, "--ledger", plain, "--json").json["criteria"][0]
    statuses = {verdict["program"]: verdict["status"] for verdict in answer["verdicts"]}
    assert statuses == {name: "pass" if label == "accepted" else "fail" for name, label in labels.items()}
    (estimate,) = answer["estimates"]
    assert (estimate["problems"], estimate["passed"], estimate["failed"]) == (2, 4, 2)
    assert estimate["value"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("slug", SCORING)
def test_scoring_packages_pass_by_group(icpc: Path, tmp_path: Path, slug: str) -> None:
    """Accepted programs pass every test; partially accepted ones pass a group of tests whole, and fail another."""
    well("ledger", "init", "--ledger", tmp_path / "ledger")
    well("import", "icpc", with_first_programs(icpc / slug, tmp_path), "--ledger", tmp_path / "ledger")
    well("run", "--limit", SCORING[slug], "--slots", 2, "--ledger", tmp_path / "ledger")
    groups = passed_groups(sql(tmp_path / "ledger", TESTS.format(slug=slug)))
    assert {name.split("/")[0] for name in groups} >= {"accepted", "partially_accepted"}
    for name, passed in groups.items():
        if name.startswith("accepted/"):
            assert all(passed.values()), name
        else:
            assert not all(passed.values()), name
        if name.startswith("partially_accepted/"):
            assert any(passed.values()), name


def passed_groups(rows: list[list[str]]) -> dict[str, dict[str, bool]]:
    """Program -> group below data/secret -> whether every test of the group passes."""
    groups: dict[str, dict[str, bool]] = defaultdict(dict)
    for program, test, outcome in rows:
        kind, group, *_ = test.split("/")
        if kind == "secret":
            groups[program][group] = groups[program].get(group, True) and outcome == "accepted"
    return groups
