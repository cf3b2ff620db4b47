"""The screens, driven by keys over real ledgers: every walk, every switch, and what is shown when it goes wrong."""

import pytest

from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import Criterion, preset
from lapledger.tui.app import LedgerApp
from lapledger.tui.line_table import Lines
from lapledger.tui.question import Question
from tests.support.pilot import settle
from tests.support.screen_ledgers import MODELS, REFERENCES, STEPS, Program, append, make_campaign, program_id

CORRECT = Question("correct", Criterion())
SEVERAL = 10_000


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("screens") / "ledger"
    make_campaign(root, (*REFERENCES, *MODELS))
    return root


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Ten thousand programs of one test, of which the references and a hundred models were run."""
    root = tmp_path_factory.mktemp("many") / "ledger"
    ran = {True: {}, False: {0: None}}
    models = tuple(Program(f"m{i:05}", (i + 1,), model="model", outcomes=ran[i < 100]) for i in range(SEVERAL - 2))
    make_campaign(root, (Program("ra", (0.5,), reference=True), Program("rb", (0.7,), reference=True), *models))
    return root


class Walk:
    """A running application and its keyboard."""

    def __init__(self, app, pilot):
        self.app, self._pilot = app, pilot

    async def press(self, *keys):
        """Presses keys one after the other, and lets all work that each began come to its end."""
        for key in keys:
            await self._pilot.press(key)
            await self.settle()

    async def settle(self):
        await settle(self.app, self._pilot)

    async def resize(self, *size):
        await self._pilot.resize_terminal(*size)

    async def click(self, x, y, times=1):
        await self._pilot.click(Lines, offset=(x, y), times=times)
        await self.settle()

    @property
    def text(self):
        """What the terminal shows, one string a line."""
        return ["".join(segment.text for segment in strip) for strip in self.app.screen._compositor.render_strips()]

    def sees(self, args):
        return any(args in line for line in self.text)

    def column(self, position=1):
        """One word of each row in sight, without the header."""
        rows = [line.split() for line in self.text]
        start = next(i for i, row in enumerate(rows) if "program" in row) + 1
        return [row[position] for row in rows[start:] if row and row[0] in ("pass", "fail", "undecided")]


class opening:  # noqa: N801  (reads as a word: async with opened(root) as walk)
    """An application over a ledger, settled on its first screen."""

    def __init__(self, root, *, question=CORRECT, at=None, size=(120, 30)):
        self.app = LedgerApp(root, at, question)
        self._running = self.app.run_test(size=size)

    async def __aenter__(self):
        walk = Walk(self.app, await self._running.__aenter__())
        await walk.settle()
        return walk

    async def __aexit__(self, *failure):
        await self._running.__aexit__(*failure)


def names(walk):
    return [label.rpartition(".")[0] for label in walk.column()]


async def test_enter_walks_down_and_escape_up(root):
    async with opening(root) as walk:
        assert walk.sees("nightly")
        assert walk.sees("13/14")
        await walk.press("enter")
        assert walk.sees(STEPS)
        await walk.press("enter")
        assert names(walk)[:3] == ["ref10", "ref20", "middle"]
        await walk.press("down", "down", "enter")
        assert walk.text[0].startswith(program_id(STEPS, "middle"))
        await walk.press("escape")
        assert names(walk)[:3] == ["ref10", "ref20", "middle"]
        await walk.press("escape", "escape", "escape", "escape")
        assert walk.sees("campaign")


async def test_tau_keys_judge_stored_facts_anew(root):
    """Expected by hand: `middle` has q = 4/8; the references 1/6, 1/3, 2/3, 5/6."""
    async with opening(root) as walk:
        await walk.press("enter", "enter")
        for key, tau, passing in (("1", "100", 5), ("2", "50", 3), ("3", "30", 1), ("4", "10", 0)):
            await walk.press(key)
            assert walk.sees(f"p_{tau} leaderboard")
            assert walk.column(0).count("pass") == passing


async def test_the_other_reading_is_one_key_away(root):
    """Expected by hand: by `score` the fastest reference has q = 0, so p_10 holds one; by `leaderboard` none."""
    async with opening(root, question=Question("top-10", preset("top-10"))) as walk:
        await walk.press("enter", "enter")
        assert walk.column(0).count("pass") == 0
        await walk.press("c")
        assert walk.sees("p_10 score, top-10+reading=score")
        assert walk.column(0).count("pass") == 1


async def test_keys_pressed_while_the_ledger_is_read_are_not_lost(root):
    """No waiting between the keys: what is shown in the end is the answer to the last question."""
    async with opening(root) as walk:
        await walk._pilot.press("enter", "2", "4", "3")
        await walk.settle()
        await walk.press("enter")
        assert walk.sees("p_30 leaderboard")
        assert walk.column(0).count("pass") == 1


async def test_typing_filters_and_escape_drops_the_filter(root):
    async with opening(root) as walk:
        await walk.press("enter", "enter", "slash", *"model q", "enter")
        assert names(walk) == []
        assert walk.sees("no row holds 'model q'")
        await walk.press("slash", *["backspace"] * 2, "enter")
        assert names(walk) == ["middle", "wrong", "halfway"]
        assert walk.sees("3 of 7")
        await walk.press("escape")
        assert len(names(walk)) == 7


async def test_s_sorts_by_the_next_column_and_o_turns_the_order(root):
    async with opening(root) as walk:
        await walk.press("enter", "enter", "s", "s")
        assert walk.sees("program ▲")
        assert names(walk) == ["halfway", "middle", "ref10", "ref20", "ref30", "ref40", "wrong"]
        await walk.press("o")
        assert walk.sees("program ▼")
        assert names(walk)[0] == "wrong"


async def test_a_click_on_a_title_sorts_and_on_a_row_opens(root):
    async with opening(root) as walk:
        await walk.press("enter", "enter")
        await walk.click(12, 0)
        assert names(walk)[0] == "halfway"
        await walk.click(12, 4)
        assert walk.app.screen.table.key == f"{STEPS}\n{program_id(STEPS, 'ref20')}"
        await walk.click(12, 4)
        assert walk.text[0].startswith(program_id(STEPS, "ref20"))


async def test_the_cursor_stays_on_its_row_when_the_order_changes(root):
    async with opening(root) as walk:
        await walk.press("enter", "enter", "down", "down")
        key = walk.app.screen.table.key
        await walk.press("s", "s", "3", "o")
        assert walk.app.screen.table.key == key


async def test_details_report_what_would_flip_the_verdict(root):
    """Expected by hand: at p_50 `middle` passes; at 40 ms on one test its k are 7 and 4 of 8, and 11/16 > 2/3."""
    async with opening(root) as walk:
        await walk.press("enter", "enter", "2", "down", "down", "enter")
        assert walk.sees("pass: q 1/2 = 0.5 <= 0.5")
        assert not walk.sees("open")
        assert walk.sees(f"15000000 ns slower on {STEPS}/t0 would flip the verdict")
        await walk.press("3")
        assert walk.sees("fail: too slow: q 1/2 = 0.5 > 0.3")


async def test_r_reads_the_newest_cut_and_the_cut_is_always_shown(tmp_path):
    first = make_campaign(tmp_path, REFERENCES)
    async with opening(tmp_path) as walk:
        assert walk.sees(f"cut {first}")
        second = make_campaign(tmp_path, MODELS, campaign="weekly", problem="other.0123456789ab")
        assert not walk.sees("weekly")
        await walk.press("r")
        assert walk.sees("weekly")
        assert walk.sees(f"cut {second}")


async def test_an_old_cut_is_shown_as_it_was(tmp_path):
    first = make_campaign(tmp_path, REFERENCES)
    make_campaign(tmp_path, MODELS, campaign="weekly", problem="other.0123456789ab")
    async with opening(tmp_path, at=first) as walk:
        assert not walk.sees("weekly")
        await walk.press("enter")
        assert walk.sees(f"cut {first}")


async def test_all_programs_of_a_campaign_in_one_table(root):
    async with opening(root) as walk:
        await walk.press("enter", "a")
        assert walk.sees("all problems")
        assert len(names(walk)) == 7
        await walk.press("enter")
        assert walk.text[0].startswith(program_id(STEPS, "ref10"))


async def test_an_empty_ledger_reports_what_to_do_next(tmp_path):
    append(tmp_path, [])
    async with opening(tmp_path) as walk:
        assert walk.sees("import problems with `lap import icpc`, then run them with `lap run`")
        await walk.press("enter", "s", "3", "end", "slash", "x", "enter", "escape", "r", "a")
        assert walk.sees("This ledger is empty")


async def test_a_failure_of_the_ledger_is_one_line_and_the_screens_go_on(root):
    async with opening(root, question=Question("mine", Criterion(calibration="affine")), size=(200, 30)) as walk:
        await walk.press("enter")
        assert walk.sees("lap: no usable calibration into campaign 'nightly'; fit one with `lap calibrate")
        await walk.press("escape")
        assert walk.sees("13/14")
        assert not walk.sees("lap: no usable")


async def test_a_ledger_that_goes_away_leaves_the_old_view_and_one_line(tmp_path):
    make_campaign(tmp_path / "here", REFERENCES)
    async with opening(tmp_path / "here", size=(200, 30)) as walk:
        await walk.press("enter")
        (tmp_path / "here").rename(tmp_path / "gone")
        await walk.press("r")
        assert walk.sees("lap: there is no ledger in")
        assert walk.sees(STEPS)
        await walk.press("3", "enter")
        assert walk.column(0).count("pass") == 1


async def test_a_failure_of_another_kind_is_handed_to_the_caller(root):
    """So that the command tells it in one line after the terminal was restored."""
    async with opening(root) as walk:
        assert await walk.app.attempt(lambda: 1 // 0) is None
    assert isinstance(walk.app.return_value, ZeroDivisionError)


async def test_a_ledger_that_cannot_be_read_ends_the_screens(tmp_path):
    """The caller gets the failure, to tell it in one line; nothing is left on the screen."""
    app = LedgerApp(tmp_path / "nowhere", None, CORRECT)
    async with app.run_test() as pilot:
        await settle(app, pilot)
    assert isinstance(app.return_value, UserError)


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_quitting_returns_nothing_and_zero(root, key):
    async with opening(root) as walk:
        await walk.press("enter", "enter", "enter")
        await walk._pilot.press(key)
    assert (walk.app.return_value, walk.app.return_code) == (None, 0)


async def test_ctrl_c_quits_from_the_filter_where_q_is_a_letter(root):
    async with opening(root) as walk:
        await walk.press("slash", "q")
        assert walk.app.is_running
        await walk._pilot.press("ctrl+c")
    assert walk.app.return_code == 0


async def test_a_tiny_terminal_shows_rows_and_can_be_walked(root):
    async with opening(root, size=(40, 12)) as walk:
        await walk.press("enter", "enter", "end")
        assert "halfway" in names(walk)
        await walk.press("slash", *"middle", "enter", "enter", "tab", "end")
        assert walk.sees("outcome")
        for size in ((10, 3), (1, 1), (120, 30)):
            await walk.resize(*size)
            await walk.settle()
        assert walk.sees("mean percentile 50.0")


async def test_names_from_packages_are_text_and_never_markup(tmp_path):
    """A name with markup and an escape sequence: the markup is shown, the escape replaced, everywhere."""
    program = Program("[red]x[/]\x1b[2J", (1, 1))
    make_campaign(tmp_path, (*REFERENCES, program), campaign="[bold]c[/bold]", problem="p[link].0123456789ab")
    async with opening(tmp_path) as walk:
        shown = "[red]x[/]\N{REPLACEMENT CHARACTER}[2J"
        assert walk.sees("[bold]c[/bold]")
        await walk.press("enter")
        assert walk.sees("p[link].0123456789ab")
        await walk.press("enter", "slash", *"[2j", "enter")
        assert walk.sees(shown)
        await walk.press("enter")
        assert walk.sees(shown)
        assert all(line.isprintable() for line in walk.text)


async def test_ten_thousand_programs_page_down_to_the_last(several):
    """Expected: those that were never run come last, in the order of their ids."""
    async with opening(several, size=(120, 100)) as walk:
        await walk.press("enter", "enter")
        assert walk.sees(f"{SEVERAL} of {SEVERAL}")
        table = walk.app.screen.table
        page = table.scrollable_content_region.height - 1
        for _ in range(SEVERAL // page + 1):
            await walk._pilot.press("pagedown")
        assert table.cursor == SEVERAL - 1
        assert names(walk)[-1] == f"m{SEVERAL - 3:05}"
        await walk.press("home")
        assert names(walk)[0] == "ra"


async def test_ten_thousand_programs_are_filtered_sorted_and_judged_anew(several):
    async with opening(several) as walk:
        await walk.press("enter", "enter", "slash", *"m00042", "enter")
        assert names(walk) == ["m00042"]
        await walk.press("escape", *["s"] * 7, "o", "home")
        assert walk.sees("median ms ▼")
        assert names(walk)[0] == "m00099"
        await walk.press("2", "o", "home")
        assert walk.column(0)[:3] == ["pass", "fail", "fail"]
