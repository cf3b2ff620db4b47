"""Real contest packages through the real path: each program gets the verdict that its judges sorted it by.

The files are third-party data beside the checkout, described in its README; the tests are skipped where they are not.
"""

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
# Most programs of the scoring packages are slow somewhere. kopatavlor's accepted ones need up to 2 s; in the others
# accepted programs need about 1 s at most, so that a low limit only spares time.
SCORING = {"kopatavlor": 5, "pickleclicker": 3, "theodortrollkarlen": 3, "virus3": 3}
TESTS = """
SELECT p.label || '/' || p.name, substr(w.test_id, length(w.problem_id) + 2), w.outcome
FROM work w JOIN program p USING (program_id) JOIN problem b ON b.problem_id = w.problem_id WHERE b.slug = '{slug}'
"""


@pytest.fixture(scope="module")
def icpc(real_data: Path) -> Path:
    """The folder of packages."""
    return real_data / "icpc"


@pytest.fixture(scope="module")
def plain(icpc: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with every outcome of the two pass-fail packages."""
    root = tmp_path_factory.mktemp("plain") / "ledger"
    well("ledger", "init", "--ledger", root)
    well("import", "icpc", icpc / "adolescentarchitecture2", icpc / "datepicker", "--ledger", root)
    well("run", "--limit", LIMIT, "--slots", 2, "--ledger", root)
    return root


def verdicts(ledger: Path, slug: str, tests: int) -> dict[str, set[str]]:
    """Folder and name of each program -> the outcomes that it shows; {"accepted"} when every test passes."""
    rows = sql(ledger, OUTCOMES.format(slug=slug))
    assert {(works, done) for *_, works, done in rows} == {(tests, tests)}
    return {name: set(outcomes) for name, outcomes, *_ in rows}


def test_adolescent_architecture_gives_the_verdicts_of_its_folders(plain: Path) -> None:
    """Five accepted programs pass all 74 tests; the two in wrong_answer fail some, each time by a wrong answer."""
    right, wrong = {"accepted"}, {"accepted", "wrong_answer"}
    assert verdicts(plain, "adolescentarchitecture2", 74) == {
        "accepted/erik.py": right,
        "accepted/paul-decimal.py": right,
        "accepted/paul-exact.py": right,
        "accepted/paul-exact-faster.py": right,
        "accepted/paul-exact-faster-2.py": right,
        "wrong_answer/erik-wrong-grundy-0.py": wrong,
        "wrong_answer/paul-float.py": wrong,
    }


def test_date_picker_gives_the_verdicts_of_its_folders(plain: Path) -> None:
    """Five accepted programs pass all 85 tests, three others give no wrong answer and run out of time."""
    right, slow = {"accepted"}, {"accepted", "time_limit"}
    assert verdicts(plain, "datepicker", 85) == {
        "accepted/maarten-bitmask-days-sort-hours.py": right,
        "accepted/maarten-product-days-sort-hours.py": right,
        "accepted/mees.py": right,
        "accepted/paul.py": right,
        "accepted/ragnar-rows-subset.py": right,
        "time_limit_exceeded/maarten-all-combinations.py": slow,
        "time_limit_exceeded/ragnar-cols-subset.py": slow,
        "time_limit_exceeded/ragnar-combinations.py": slow,
    }


def test_replay_judges_the_same_programs_correct(plain: Path) -> None:
    """`lap replay` passes the ten programs labelled accepted and no other; pass@1 is the mean of 5/7 and 5/8."""
    labels = dict(sql(plain, "SELECT program_id, label FROM program"))
    answer = well("replay", "--tau", 100, "--ledger", plain, "--json").json["criteria"][0]
    said = {verdict["program"]: verdict["status"] for verdict in answer["verdicts"]}
    assert said == {name: "pass" if label == "accepted" else "fail" for name, label in labels.items()}
    (estimate,) = answer["estimates"]
    assert (estimate["problems"], estimate["passed"], estimate["failed"]) == (2, 10, 5)
    assert estimate["value"] == pytest.approx((5 / 7 + 5 / 8) / 2)


@pytest.mark.parametrize("slug", SCORING)
def test_scoring_packages_pass_by_group(icpc: Path, tmp_path: Path, slug: str) -> None:
    """Accepted programs pass every test; partially accepted ones pass a group of tests whole, and fail another."""
    well("ledger", "init", "--ledger", tmp_path / "ledger")
    well("import", "icpc", icpc / slug, "--ledger", tmp_path / "ledger")
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
        place, group, *_ = test.split("/")
        if place == "secret":
            groups[program][group] = groups[program].get(group, True) and outcome == "accepted"
    return groups
