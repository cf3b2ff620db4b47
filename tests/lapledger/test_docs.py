"""The reference pages are what the code says, and their examples work."""

import re
import tomllib
from pathlib import Path

import pytest

from lapledger.commands.system.docs import pages
from lapledger.replay.criteria import Criterion
from lapledger.settings import Settings, read_settings
from tests.support.lap import well

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["cli.md", "events.md", "views.md", "criteria.md"])
def test_a_committed_page_is_what_the_code_reports(name: str) -> None:
    """Byte for byte; `make docs` writes it anew."""
    assert (ROOT / "docs" / name).read_text() == pages()[name]


def test_the_command_writes_just_these_pages(tmp_path: Path) -> None:
    """`lap docs` makes the folder and the files of `pages()`."""
    well("docs", tmp_path / "new")
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == pages()


def test_the_example_criterion_is_a_criterion() -> None:
    """The first TOML block of docs/criteria.md is read as the values that it shows."""
    block, *_ = blocks(ROOT / "docs" / "criteria.md", "toml")
    assert Criterion.from_toml(block) == Criterion(
        tau="30", reading="leaderboard", timeout_ms=1500, startup="subtract", min_references=8
    )


def test_the_readme_s_settings_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each TOML block of the README is either a criterion or a `lap.toml`, and gives the values that it shows."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(ROOT / "README.md", "toml"):
        values = tomllib.loads(block)
        if set(values) <= set(Settings.model_fields):
            Path("lap.toml").write_text(block)
            shown = read_settings().model_dump(mode="json")
            assert {name: shown[name] for name in values} == values
        else:
            assert Criterion.from_toml(block).hash


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
