"""The application: holds the view and the question, reads and judges in other threads, and ends cleanly.

Failures of the ledger are shown in one line. A ledger that cannot be read at all, and any failure of another kind, end
the application and are handed to the caller.
"""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import work
from textual.app import App
from textual.binding import Binding, BindingType

from lapledger.ledger.errors import LapError
from lapledger.ledger.store.location import Location
from lapledger.tui.question import Question
from lapledger.tui.tables import TableScreen
from lapledger.tui.views import CampaignsScreen

if TYPE_CHECKING:
    from lapledger.tui.source import View

T = TypeVar("T")

TERMINATED = 128 + signal.SIGTERM


class LedgerApp(App[Exception]):
    """The terminal screens over one ledger; returns the failure that ended it, if one did."""

    TITLE = "lapledger"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("q", "quit", "quit"),
        Binding("r", "newest", "newest"),
        Binding("1", "tau('100')", "p_100"),
        Binding("2", "tau('50')", "p_50"),
        Binding("3", "tau('30')", "p_30"),
        Binding("4", "tau('10')", "p_10"),
        Binding("c", "reading", "reading"),
    ]

    def __init__(self, location: Location, at: str | None, question: Question) -> None:
        super().__init__()
        self.location = location
        self.question = question
        self.campaign: str | None = None
        self.view: View | None = None
        self.busy = ""
        self.error = ""
        self._at = at
        self._turn = asyncio.Lock()

    async def on_mount(self) -> None:
        """Shows the first screen and reads the ledger behind it."""
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, self.exit)
            loop.add_signal_handler(signal.SIGTERM, lambda: self.exit(return_code=TERMINATED))
        await self.push_screen(CampaignsScreen())
        self._change("reading the ledger ...", lambda: self._read(self._at))

    def open_campaign(self, campaign: str) -> None:
        """Judges a campaign at the cut that is shown."""
        self.campaign = campaign
        cut = self.view.cut if self.view is not None else self._at
        self._change(f"judging {campaign} ...", lambda: self._read(cut))

    def action_newest(self) -> None:
        """Reads everything admitted by now."""
        self._change("reading the newest cut ...", lambda: self._read(None))

    def action_tau(self, tau: str) -> None:
        """Switches to the fastest tau percent."""
        self._judge_by(self.question.with_tau(tau))

    def action_reading(self) -> None:
        """Switches between the readings of the quality q."""
        self._judge_by(self.question.with_next_reading())

    async def attempt(self, function: Callable[..., T | None], *arguments: object) -> T | None:
        """What the function returns from another thread; None after a failure, which is shown or ends everything."""
        try:
            return await asyncio.to_thread(function, *arguments)
        except LapError as error:
            if self.view is None:  # there is nothing to show
                self.exit(error)
            self.error = f"lap: {' '.join(str(error).split())}"
        except Exception as error:  # noqa: BLE001  (the caller reports it in one line, once the terminal is restored)
            self.exit(error)
        return None

    def _judge_by(self, question: Question) -> None:
        self.question = question
        self._change(f"judging by {question.description()} ...", self._judge)

    def _read(self, at: str | None) -> "View":
        from lapledger.tui.source import read_view  # not before the first screen is drawn

        return read_view(self.location, at, self.campaign, self.question)

    def _judge(self) -> "View | None":
        view = self.view
        if view is None or view.judged is None or view.judged.criterion == self.question.criterion:
            return view
        return replace(view, judged=view.judged.under(self.question.criterion, self.question.name))

    @work(group="view")
    async def _change(self, busy: str, function: Callable[[], "View | None"]) -> None:
        """Replaces the view by what the function makes of it; changes wait for each other."""
        async with self._turn:
            self.busy, self.error = busy, ""
            self._table().write_status()
            view = await self.attempt(function)
            self.busy = ""
            self.view = view or self.view
            self._table().show()

    def _table(self) -> TableScreen:
        screen = self.screen
        assert isinstance(screen, TableScreen)  # noqa: S101  (no other screen is ever pushed)
        return screen
