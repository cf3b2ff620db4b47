"""The common part of every screen: one table with a heading, a filter, an order, and a status line with the cut.

A screen says what it shows; reading and judging happen in other threads, so that keys are answered meanwhile.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from lapledger.tui.grid import Grid, plain
from lapledger.tui.line_table import EMPTY, Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from lapledger.ledger.store.location import Location
    from lapledger.tui.question import Question
    from lapledger.tui.source import View

T = TypeVar("T")


class Desk(Protocol):
    """What a screen needs of the application that holds the view."""

    location: "Location"
    question: "Question"
    campaign: str | None
    view: "View | None"
    busy: str
    error: str

    def open_campaign(self, campaign: str) -> None:
        """Judges a campaign at the cut that is shown."""

    async def attempt(self, function: "Callable[..., T | None]", *arguments: object) -> T | None:
        """What the function returns from another thread; None after a failure."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one screen shows: a grid, lines above it, and what to say when the grid has no rows."""

    grid: Grid
    above: tuple[str, ...] = ()
    hint: str = ""


class TableScreen(Screen[None]):
    """A screen with one table; subclasses give `where` and `make`, and act when a row is opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "find", "filter", key_display="/"),
        Binding("s", "sort", "sort"),
        Binding("o", "reverse", show=False),
        Binding("escape", "back", "back", key_display="esc"),
    ]
    OPENS: ClassVar[bool] = True
    """Whether a row leads to another screen."""
    DEFAULT_CSS = """
    TableScreen #heading { max-height: 2; text-style: bold; }
    TableScreen #above { height: auto; max-height: 45%; display: none; }
    TableScreen #note { height: auto; max-height: 3; display: none; }
    TableScreen #filter { display: none; }
    TableScreen #status { height: auto; max-height: 3; color: $text-muted; }
    TableScreen #status.error { color: $text-error; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._page = Page(EMPTY)
        self._column: int | None = None
        self._descending = False
        self.table = Lines(opens=self.OPENS)
        self._heading, self._lines, self._note, self._status = (
            Static(id=name, markup=False) for name in ("heading", "lines", "note", "status")
        )
        self._above = VerticalScroll(self._lines, id="above")
        self._filter = Input(placeholder="rows that hold these words", id="filter", compact=True, select_on_focus=False)

    @property
    def desk(self) -> Desk:
        """The application, which holds the view."""
        return cast("Desk", self.app)

    @abstractmethod
    def where(self) -> str:
        """Where in the ledger this screen is."""

    @abstractmethod
    def make(self, view: "View") -> Page | None:
        """What to show of a view, None when the view does not hold it yet. Called in another thread."""

    def compose(self) -> ComposeResult:
        """Heading, lines above the table, the table, the filter, the status and the keys."""
        yield self._heading
        yield self._above
        yield self._note
        yield self.table
        yield self._filter
        yield self._status
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Keys go to the table."""
        self.table.focus()

    def on_screen_resume(self) -> None:
        """Shows what changed while another screen was on top."""
        self.show()

    @work(exclusive=True, group="show")
    async def show(self) -> None:
        """Shows the view as it is now."""
        self.write_status()
        if self.desk.view is not None:
            self._page = await self.desk.attempt(self.make, self.desk.view) or self._page
        self._arrange()

    def write_status(self) -> None:
        """Writes heading, note and status anew; rows stay."""
        grid, shown, desk = self._page.grid, len(self.table.order), self.desk
        _write(self._heading, f"{self.where()} · {desk.question.description()}")
        _write(self._lines, *self._page.above)
        self._above.display = bool(self._page.above)
        wanted = self._filter.value
        _write(self._note, desk.busy or (f"no row holds {wanted!r}" if wanted and grid.keys else self._page.hint))
        self._note.display = not shown and not desk.error
        order = "" if self._column is None or not grid.columns else f", by {grid.columns[self._column].title}"
        cut = "" if desk.view is None else f" · cut {desk.view.cut}"
        _write(self._status, desk.error or (desk.busy or f"{shown} of {len(grid.keys)}{order}") + cut)
        self._status.set_class(bool(desk.error), "error")

    def _arrange(self) -> None:
        grid = self._page.grid
        column = self._column if self._column is not None and self._column < len(grid.columns) else None
        order = grid.order(self._filter.value, column, descending=self._descending)
        self.table.show(grid, order, (column, self._descending))
        self.write_status()

    def action_find(self) -> None:
        """Opens the filter."""
        self._filter.display = True
        self._filter.focus()

    def action_sort(self) -> None:
        """Sorts by the next column, and by none after the last."""
        column = 0 if self._column is None else self._column + 1
        self._column = column if column < len(self._page.grid.columns) else None
        self._arrange()

    def action_reverse(self) -> None:
        """Turns the order around."""
        self._descending = not self._descending
        self._arrange()

    def action_back(self) -> None:
        """Drops the filter, else leaves this screen for the one below."""
        if self._filter.display:
            self._filter.value = ""
            self._filter.display = False
            self.table.focus()
        elif len(self.app.screen_stack) > 2:  # the lowest is the toolkit's own
            self.desk.error = ""
            self.app.pop_screen()

    @on(Input.Changed)
    def _narrow(self) -> None:
        self._arrange()

    @on(Input.Submitted)
    def _keep_filter(self) -> None:
        self.table.focus()

    @on(Lines.Sorted)
    def _sort_by(self, message: Lines.Sorted) -> None:
        self._descending = message.column == self._column and not self._descending
        self._column = message.column
        self._arrange()


def _write(widget: Static, *lines: str) -> None:
    widget.update("\n".join(map(plain, lines)))
