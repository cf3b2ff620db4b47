"""The committed corpus: what every problem holds, and that its data are what the seeded generators give.

How long a program takes is measured by the product, never asserted here.
"""

import runpy
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from lapledger.producers.corpus.package import Package, PackageTest, read_package

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
PROBLEMS = sorted(path.parent.name for path in CORPUS.glob("*/problem.yaml"))
INCORRECT = {"wrong_answer", "run_time_error", "time_limit_exceeded"}
SMALL_BYTES = 20_000
BUDGET_BYTES = 10_000_000

each_problem = pytest.mark.parametrize("slug", PROBLEMS)


@cache
def package(slug: str) -> Package:
    """A problem as the importer reads it."""
    return read_package(CORPUS / slug)


def below(slug: str, folder: str) -> list[PackageTest]:
    """The tests of one folder of data/secret."""
    return [test for test in package(slug).tests if test.group == f"secret/{folder}"]


def test_at_least_twelve_problems_within_the_budget() -> None:
    """Twelve problems or more, and all their files together below ten megabytes."""
    assert len(PROBLEMS) >= 12
    files = [path for slug in PROBLEMS for path in (CORPUS / slug).rglob("*") if "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files if path.is_file()) <= BUDGET_BYTES


@each_problem
def test_a_problem_is_a_complete_package(slug: str) -> None:
    """The importer takes every file; name, licence and English statement are there."""
    added = package(slug)
    assert (added.slug, added.excluded, added.license) == (slug, (), "cc by-sa")
    assert added.name != slug
    assert added.statement is not None


@each_problem
def test_ten_accepted_and_four_incorrect_programs_of_three_kinds(slug: str) -> None:
    """Enough references for percentile ranks, and each kind of failure at least once."""
    labels = Counter(program.label for program in package(slug).programs)
    assert set(labels) == {"accepted"} | INCORRECT
    assert labels["accepted"] >= 10
    assert labels.total() - labels["accepted"] >= 4


@each_problem
def test_no_two_programs_are_the_same_and_each_states_what_it_does(slug: str) -> None:
    """Sources differ beyond white space and comments; the first line of each is a comment."""
    sources = [program.source.decode() for program in package(slug).programs]
    assert all(source.startswith("# ") for source in sources)
    assert len({_bare(source) for source in sources}) == len(sources)


@each_problem
def test_small_tests_check_and_large_ones_time(slug: str) -> None:
    """Eight optimization tests or more that grow; small correctness tests, original, that are never timed."""
    checks, large = below(slug, "correctness"), below(slug, "optimization")
    assert len(large) >= 8
    assert len(checks) >= 8
    assert all((test.correctness, test.optimization, test.original) == (True, False, True) for test in checks)
    assert all((test.correctness, test.optimization) == (False, True) for test in large)
    assert max(len(test.input) for test in checks) <= SMALL_BYTES
    assert len({test.input for test in package(slug).tests}) == len(package(slug).tests)


@each_problem
def test_an_accepted_program_gives_the_small_answers(slug: str) -> None:
    """The committed answers of samples and correctness tests are what the first accepted program prints."""
    build = runpy.run_path(str(CORPUS / "build.py"))
    tolerance = build["float_tolerance"](CORPUS / slug)
    program = build["programs"](CORPUS / slug, "accepted")[0]
    for test in (test for test in package(slug).tests if not test.optimization):
        done = build["run_program"](program, test.input.decode(), limit_s=60)
        assert done.verdict == "ok", test.path
        assert build["same_output"](done.output, test.answer.decode(), tolerance=tolerance), test.path


def test_the_data_are_what_the_generators_give() -> None:
    """`build.py --check` finds every input byte for byte as generated, every file owned, every size in its budget."""
    done = check(CORPUS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{slug}: ok" for slug in PROBLEMS]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("secret/correctness/01-smallest.in", "01-smallest.in differs from the generated input"),
        ("secret/correctness/99-more.in", "99-more.in belongs to no test"),
        ("secret/optimization/big.ans", "more than"),
    ],
)
def test_the_check_sees_damage(tmp_path: Path, path: str, text: str) -> None:
    """A changed input, a file of no test and a file beyond its budget each end with one line and exit code 1."""
    shutil.copy(CORPUS / "build.py", tmp_path)
    shutil.copytree(CORPUS / "stonegame", tmp_path / "stonegame")
    target = tmp_path / "stonegame" / "data" / path
    if target.name == "big.ans":
        target = next(target.parent.glob("*.ans"))
        target.write_bytes(b"1\n" * 300_000)
    else:
        target.write_bytes(b"1\n")
    done = check(tmp_path)
    assert done.returncode == 1
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `build.py --check` says of the corpus in a folder."""
    command = [sys.executable, str(folder / "build.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _bare(source: str) -> str:
    lines = (line.partition("#")[0] for line in source.splitlines())
    return "".join("".join(line.split()) for line in lines)
