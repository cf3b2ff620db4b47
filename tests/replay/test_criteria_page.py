"""The reference page: generated, its examples are criteria that `lap` takes, its numbers are those worked by hand."""

import re
from pathlib import Path

import pytest

from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.fields import FIELDS
from lapledger.replay.judging.statistics import STATISTICS
from tests.replay.test_environments import BY_HAND, CANDIDATES
from tests.support.lap import well
from tests.support.screen_ledgers import MODELS, REFERENCES, make_campaign

PAGE = (Path(__file__).parents[2] / "docs" / "criteria.md").read_text()
SECTIONS = dict(re.findall(r"^### `([^`]+)`\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))


def test_the_page_shows_every_preset_statistic_and_key():
    """Each preset but the plain default has a section of its own, each statistic and key a row."""
    assert set(SECTIONS) == set(PRESETS) - {"correct"}
    for name in (*STATISTICS, *FIELDS, *PRESETS):
        assert re.search(rf"^\| `{name}` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", SECTIONS)
def test_each_block_is_the_criterion_it_names(name):
    """Its TOML, read as any user's, has the preset's hash."""
    (block,) = re.findall(r"```toml\n(.*?)```", SECTIONS[name], re.DOTALL)
    assert Criterion.from_toml(block).hash == PRESETS[name].hash


@pytest.mark.parametrize("name", BY_HAND)
def test_each_table_is_what_was_worked_by_hand(name):
    """c, g and q of every program, as the page shows them."""
    rows = re.findall(r"^\| (\w+) \| (-?\d) \| (-?\d) \| ([\d.]+) \|", SECTIONS[name], re.MULTILINE)
    shown = {program: (int(c), int(g), float(q)) for program, c, g, q in rows}
    for program, expected in zip(CANDIDATES, BY_HAND[name], strict=True):
        c, g, q = expected.split()
        top, _, bottom = q.partition("/")
        assert shown[program] == (int(c), int(g), pytest.approx(int(top) / int(bottom or 1), abs=1e-4))


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A ledger with one problem: four references and three models."""
    root = tmp_path_factory.mktemp("page") / "ledger"
    make_campaign(root, (*REFERENCES, *MODELS))
    return root


@pytest.mark.parametrize("line", re.findall(r"^.*?`(lap replay --[^`]+)`$", PAGE, re.MULTILINE))
def test_each_command_of_the_page_runs(line, ledger, tmp_path):
    """`lap replay` as the page has it, on a ledger of one problem, with the page's first block as strict.toml."""
    (tmp_path / "strict.toml").write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])
    done = well(*line.split()[1:], "--ledger", ledger, cwd=tmp_path)
    assert "human" in done.out
