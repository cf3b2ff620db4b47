"""Every command of the README and of these pages is run as it stands, in order, on a copy of the demo's ledger."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lapledger.test_api_page import last_value, plain
from tests.lapledger.test_screens_command import terminal
from tests.support.lap import environment, sql, well
from tests.support.packages import make_package

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = README + (ROOT / "docs" / "tutorial.md").read_text()
STUDIES = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("estimates", "sweeping", "simulating"))
MAKEFILE = (ROOT / "Makefile").read_text()
BIN = Path(sys.executable).parent


def shell_lines(pages: str) -> list[str]:
    """The lines of the shell blocks of pages, each once."""
    text = "".join(re.findall(r"^```sh\n(.*?)^```$", pages, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")
    return list(dict.fromkeys(line for line in text.splitlines() if line and line[0] != "#"))


LINES = shell_lines(PAGES)
LAP = [line for line in LINES if line.startswith("lap ")]
MAKE = [line for line in LINES if line.startswith("make ")]
SCREENS = sorted({*re.findall(r"`(lap tui .*?)`", PAGES), *(line for line in LAP if line.startswith("lap tui"))})

PROGRAM_ID = r"[a-z0-9-]+\.[0-9a-f]{12}/\w+\.[0-9a-f]{12}"
EXPECTED = {
    "lap verify": "proven",
    "lap trace": "recomputed: reward matches",
    "lap why": "to flip it",
    'lap sql "': "cut control=",
    "lap sql --views": "execution",
    "lap replay": "cut control=",
    "lap run --campaign main": "nothing to run; 0 executions remaining",
}


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What `sh` makes of a line, with the environment's programs first on the path."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in environment(PATH=path).items() if not name.startswith("MAKE")}
    return subprocess.run(["sh", "-c", line], cwd=cwd, env=kept, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a demo ledger of its own and the corpus, as in a checkout after `make demo`."""
    there = tmp_path_factory.mktemp("reader")
    shutil.copytree(demo, there / "demo")
    (there / "corpus").symlink_to(ROOT / "corpus")
    return there


def test_every_line_is_a_command_that_is_run_here() -> None:
    """Nothing stands in a shell block but `lap` and `make`, so that no line goes untested."""
    assert LAP
    assert sorted(LAP + MAKE) == sorted(LINES)
    assert MAKE[0] == "make demo"


@pytest.mark.parametrize("line", [line for line in LAP if line not in SCREENS])
def test_a_command_works_as_it_stands(folder: Path, line: str) -> None:
    """Exit code 0, something to read, no traceback, and the words that the README promises."""
    done = shell(line, folder)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert output.strip()
    assert "Traceback" not in output
    assert all(expected in output for start, expected in EXPECTED.items() if line.startswith(start)), output


@pytest.mark.parametrize("line", shell_lines(STUDIES))
def test_a_command_of_the_other_pages_works(folder: Path, line: str) -> None:
    """The same, in this process: these lines need no shell."""
    program, *arguments = shlex.split(line)
    assert program == "lap"
    assert "cut" in well(*arguments, cwd=folder).out


@pytest.mark.parametrize("line", SCREENS)
def test_the_screens_open_and_quit(folder: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lap tui` draws the demo's campaign in a real terminal, and q ends it with exit code 0."""
    monkeypatch.chdir(folder)
    with terminal(*shlex.split(line)[2:]) as screen:
        screen.read_until(b"main")
        screen.write(b"q")
        assert screen.ended() == (0, True)


def test_programs_that_the_readme_shows_are_the_demo_s(demo: Path) -> None:
    """Ids are digests of the committed corpus: each one in the text is a program of the demo's ledger."""
    known = {row[0] for row in sql(demo, "SELECT program_id FROM program")}
    assert set(re.findall(PROGRAM_ID, PAGES)) <= known


def test_the_python_of_the_readme_gives_its_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lines that a reader types, with the table below them; numbers differ from machine to machine."""
    monkeypatch.chdir(folder)
    [(code, output)] = re.findall(r"^```python\n(.*?)^```$\n\n```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert plain(repr(last_value(code, {}))) == plain(output)


LINKING = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))


@pytest.mark.parametrize("page", LINKING, ids=[str(page.relative_to(ROOT)) for page in LINKING])
def test_links_lead_to_files(page: Path) -> None:
    """Every relative link and picture of a page is there."""
    links = [link.partition("#")[0] for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text())]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_index() -> None:
    """docs/README.md links every page beside it."""
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"({name}" not in index} == set()


def test_make_targets_are_those_of_the_makefile() -> None:
    """`make X` in the README, in a block or in a sentence, is a documented target; CI runs `make test`."""
    targets = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))
    named = {line.split()[1] for line in MAKE} | set(re.findall(r"`make ([a-z-]+)`", README))
    assert named <= targets
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()


def test_make_demo_is_the_demo_that_these_tests_ran() -> None:
    """Its recipe is `lap demo --into demo --replace`; `make install` has a recipe too, shown without running it."""
    assert make("-n", "-o", ".venv/.core", "demo").splitlines() == [f"{BIN}/lap demo --into demo --replace"]
    assert "installed" in make("-n", "install")


def test_make_corpus_run_takes_packages_to_an_answer(tmp_path: Path) -> None:
    """The recipe that runs the whole corpus, here on one small package: 25 outcomes, and p_tau from them."""
    make_package(tmp_path / "tiny" / "sums")
    root = tmp_path / "ledger"
    output = make("-o", ".venv/.core", f"CORPUS={tmp_path / 'tiny'}", f"CORPUS_DIR={root}", "corpus-run")
    assert "p_10" in output
    assert sql(root, "SELECT count(*) FROM execution WHERE accepted") == [[25]]
    assert well("verify", "--ledger", root, "--json").json["problems"] == []


def make(*arguments: str) -> str:
    """What a call of `make` in the checkout prints; it must end well, and uses the environment of the tests."""
    done = shell(shlex.join(["make", "--no-print-directory", f"BIN={BIN}", *arguments]), ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
