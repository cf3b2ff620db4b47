"""What the chaos suite shares: its length, a nursery of processes to kill, an empty ledger to copy, and its counts."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lapledger.ledger.store.open_ledger import create_ledger
from tests.chaos.nursery import Nursery, nursery

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  (nothing is shared: a folder of our own is made in it)
ROOM = 1 << 30

COUNTS = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/chaos --chaos-long 10` kills ten times as often."""
    parser.addoption("--chaos-long", type=int, default=1, metavar="N", help="repeat the chaos suite's kills N times")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes what was killed, how often, and where."""
    lines = terminalreporter.config.stash.get(COUNTS, [])
    if lines:
        terminalreporter.section("chaos")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Adds a line to the summary at the end of the run."""
    lines = request.config.stash.setdefault(COUNTS, [])
    return lines.append


@pytest.fixture(scope="session")
def times(request: pytest.FixtureRequest) -> int:
    """How many times as long as usual the suite is."""
    return int(request.config.getoption("chaos_long", 1))


@pytest.fixture(scope="session")
def victims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Where processes to kill come from."""
    with nursery(tmp_path_factory.mktemp("victims")) as made:
        yield made


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger to copy."""
    root = tmp_path_factory.mktemp("empty") / "ledger"
    create_ledger(root, "identity-0", "now").close()
    return root


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory, where there is room: who dies at a named place does not care how long a sync takes."""
    if not SHARED_MEMORY.is_dir() or shutil.disk_usage(SHARED_MEMORY).free < ROOM:
        yield tmp_path_factory.mktemp("memory")
        return
    with tempfile.TemporaryDirectory(prefix="lap-chaos-", dir=SHARED_MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def quick(empty: Path, memory: Path) -> Iterator[Callable[[str], Path]]:
    """Makes copies of the empty ledger in memory, by name; gone after the test."""
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield lambda name: Path(shutil.copytree(empty, Path(folder) / name))


@pytest.fixture
def fresh(empty: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes copies of the empty ledger on the disk, by name."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(empty, tmp_path / name))

    return copied
