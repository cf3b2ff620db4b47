"""Pictures of the screens, kept as golden files: no clock, no random id and no folder of this machine is in them.

After a wanted change run pytest with --snapshot-update, and look at each picture before keeping it.
"""

from pathlib import Path

import pytest

from lapledger.replay.criteria import Criterion
from lapledger.tui.app import LedgerApp
from lapledger.tui.question import Question
from tests.support.pilot import settle
from tests.support.screen_ledgers import MODELS, REFERENCES, append, make_campaign

LEDGER = Path(".lap")


@pytest.fixture
def picture(snap_compare, tmp_path, monkeypatch):
    """Compares the picture after some keys, each with all the work that it begins, with the one kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def compare(*keys, size=(110, 20)):
        app = LedgerApp(LEDGER, None, Question("correct", Criterion()))

        async def press(pilot):
            await settle(app, pilot)
            for key in keys:
                await pilot.press(key)
                await settle(app, pilot)

        return snap_compare(app, terminal_size=size, run_before=press)

    return compare


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param((), id="campaigns"),
        pytest.param(("enter",), id="problems"),
        pytest.param(("enter", "enter", "2", "s", "s", "s"), id="programs"),
        pytest.param(("enter", "enter", "3", "down", "down", "enter"), id="program"),
        pytest.param(("enter", "enter", "slash", *"model"), id="filter"),
    ],
)
def test_screens_look_as_they_did(picture, keys):
    make_campaign(LEDGER, (*REFERENCES, *MODELS))
    assert picture(*keys)


def test_an_empty_ledger_looks_as_it_did(picture):
    append(LEDGER, [])
    assert picture(size=(60, 12))


def test_a_tiny_terminal_looks_as_it_did(picture):
    make_campaign(LEDGER, (*REFERENCES, *MODELS))
    assert picture("enter", "enter", "end", size=(40, 12))
