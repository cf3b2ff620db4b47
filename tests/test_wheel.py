"""The wheel: one import name, and far from the checkout it makes a ledger, finds the demo's problems, runs and replays.

An audit hook in the new environment notes every file that Python opens or lists inside the checkout. Commands run from
a folder that holds packages called like ours, as training repositories do; each raises when it is imported.
"""

import csv
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.lap import environment
from tests.support.packages import make_package

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ledger", "producers", "consumers", "replay", "tui", "migrations")
FOREIGN = (*PACKAGES, "tests", "commands", "settings", "trainers")
"""Packages of the user's own in the working directory."""

WATCH = """
import os, sys

def watch(event, arguments):
    if event not in ("open", "os.listdir", "os.scandir", "sqlite3.connect") or not arguments:
        return
    path = arguments[0]
    path = os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes)) else ""
    if path.startswith({root!r}) and not path.startswith({shared!r}):
        os.write(notes, (path + chr(10)).encode())

notes = os.open({notes!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if os.access({folder!r}, os.W_OK) else 2
sys.addaudithook(watch)
"""

MISTAKES = """
import lapledger as lap
from lapledger.trainers import Rewards, trl_rewards, verl_rewards

reward = trl_rewards(Rewards(ledger="none", training="run1"), num_generations=1)
for call in (lambda: lap.open("none"), lambda: reward(prompts=[""], completions=[""], problem=["sums"])):
    try:
        call()
    except lap.UserError as error:
        print(error)
"""

REWARDED = """
from lapledger.trainers import Rewards, trl_rewards

reward = trl_rewards(Rewards(ledger=".lap", training="run1", criterion="correct"), num_generations=2)
programs = ["print(sum(map(int, open(0).read().split())))", "print(-1)"]
texts = [f"```python\\n{program}\\n```" for program in programs]
print(reward(prompts=["Add."] * 2, completions=texts, problem=["sums"] * 2))
"""


@dataclass(frozen=True)
class Installed:
    """A virtual environment that holds the wheel."""

    venv: Path
    notes: Path

    def call(self, *arguments: object, cwd: Path) -> str:
        """Standard output of a program of the environment's bin, which must end well."""
        program, *arguments = (str(argument) for argument in arguments)
        command = [str(self.venv / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, built and installed by uv; its dependencies are shared with the environment of the tests."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if uv is None:
        pytest.skip("uv builds the wheel, and is not at hand; `make test` installs it")
    folder = tmp_path_factory.mktemp("wheel")
    made = Installed(folder / "venv", folder / "notes.txt")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.venv], check=True)
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT], cwd=folder, check=True)
    (wheel,) = folder.glob("*.whl")
    install = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", made.venv / "bin" / "python"]
    subprocess.run([*install, wheel], cwd=folder, check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    shared = sysconfig.get_path("purelib")
    (packages / "shared.pth").write_text(f"{shared}\n")
    watch = WATCH.format(root=f"{ROOT}/", shared=f"{sys.prefix}/", notes=str(made.notes), folder=str(folder))
    (packages / "sitecustomize.py").write_text(watch)
    return made


def test_the_watch_sees_a_file_of_the_checkout(installed: Installed, tmp_path: Path) -> None:
    """The hook that the other tests rely on: one opened file is one line."""
    before = _noted(installed)
    installed.call("python", "-c", f"open({str(ROOT / 'pyproject.toml')!r}).close()", cwd=tmp_path)
    assert _noted(installed) == [*before, str(ROOT / "pyproject.toml")]


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A training repository with packages called like those of lapledger."""
    for name in FOREIGN:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise RuntimeError('{name} of the working directory')\n")
    return tmp_path


def test_the_wheel_holds_one_import_name(installed: Installed) -> None:
    """RECORD lists files below `lapledger`, the metadata and the command, and nothing else."""
    (record,) = installed.venv.glob("lib/python*/site-packages/lapledger-*.dist-info/RECORD")
    names = [row[0] for row in csv.reader(record.read_text().splitlines())]
    assert {name.partition("/")[0] for name in names if not name.startswith("..")} == {"lapledger", record.parent.name}
    assert [name for name in names if name.startswith("..")] == ["../../../bin/lap"]
    assert not any(name.endswith((".pth", ".ipynb")) or "/tests/" in name for name in names)


def test_the_foreign_packages_are_seen(installed: Installed, training: Path) -> None:
    """The rule that the next tests rely on: Python would import the package of the working directory."""
    code = "import replay"
    command = [installed.venv / "bin" / "python", "-c", code]
    done = subprocess.run(command, cwd=training, env=environment(), capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "RuntimeError: replay of the working directory"


def test_the_library_works_beside_foreign_packages(installed: Installed, training: Path) -> None:
    """`import lapledger`, the adapters for trainers and the Python API, all from the wheel."""
    first, second = installed.call("python", "-c", MISTAKES, cwd=training).splitlines()
    assert first == second
    assert first.startswith("there is no ledger in none")


def test_every_package_comes_from_the_wheel(installed: Installed, training: Path) -> None:
    """Each package's file lies in the new environment, and the command states the wheel's version."""
    names = [f"lapledger.{name}" for name in PACKAGES]
    code = f"import importlib; print(*[importlib.import_module(n).__file__ for n in {names}], sep='\\n')"
    paths = installed.call("python", "-c", code, cwd=training).splitlines()
    assert len(paths) == len(PACKAGES)
    assert all(Path(path).is_relative_to(installed.venv) for path in paths), paths
    version = installed.call(
        "python", "-c", "import importlib.metadata as m; print(m.version('lapledger'))", cwd=training
    )
    assert installed.call("lap", "--version", cwd=training).strip().endswith(version.strip())


def test_the_demo_s_problems_lie_in_the_wheel(installed: Installed, tmp_path: Path) -> None:
    """Every file of the four problems, and the samples, are there, byte for byte as in the checkout."""
    code = "from lapledger.commands.system.demo import *; print(demo_corpus()); print(*PROBLEMS)"
    folder, slugs = installed.call("python", "-c", code, cwd=tmp_path).splitlines()
    assert Path(folder).is_relative_to(installed.venv)
    for slug in slugs.split():
        assert _files(Path(folder) / slug) == _files(ROOT / "corpus" / slug)
    assert (Path(folder) / "samples.jsonl").read_bytes() == (ROOT / "corpus" / "samples.jsonl").read_bytes()


def test_the_workflow_runs_far_from_the_checkout(installed: Installed, training: Path) -> None:
    """Init, import of a demo problem, run of a small package, replay; no file of the checkout is read."""
    before = _noted(installed)
    code = "from lapledger.commands.system.demo import *; print(demo_corpus() / PROBLEMS[0])"
    problem = installed.call("python", "-c", code, cwd=training).strip()
    installed.call("lap", "ledger", "init", cwd=training)
    assert "slidingmax" in installed.call("lap", "import", "icpc", problem, cwd=training)
    installed.call("lap", "import", "icpc", make_package(training / "sums"), cwd=training)
    installed.call("lap", "run", "sums", "--campaign", "main", cwd=training)
    rows = installed.call("lap", "sql", "SELECT count(*) AS n FROM execution WHERE accepted", "--json", cwd=training)
    assert '"rows": [\n    [\n      25' in rows  # five programs on five tests
    assert "pass@1" in installed.call("lap", "replay", "--tau", "100", cwd=training)
    code = "import lapledger as lap; print(len(lap.open('.lap').timings(program='sums/quick')))"
    assert installed.call("python", "-c", code, cwd=training) == "5\n"
    assert installed.call("python", "-c", REWARDED, cwd=training) == "[1.0, -1.0]\n"
    assert _noted(installed) == before


def _noted(installed: Installed) -> list[str]:
    return installed.notes.read_text().splitlines() if installed.notes.exists() else []


def _files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
