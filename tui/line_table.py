"""A table of any length that draws only the lines in sight: a fixed header, a cursor, and no markup anywhere."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from lapledger.tui.grid import Column, Grid, width

GAP = 2
EMPTY = Grid((), (), (), ())


class Lines(ScrollView, can_focus=True):
    """Shows rows of a grid in a given order."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--header", "lines--cursor"}
    DEFAULT_CSS = """
    Lines { height: 1fr; background: $surface; }
    Lines > .lines--header { text-style: bold; background: $panel; }
    Lines > .lines--cursor { background: $primary-muted; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home", "go(0)", show=False),
        Binding("end", "go(-1)", show=False),
        Binding("enter", "open", "open"),
    ]

    class Chosen(Message):
        """A row was chosen."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Sorted(Message):
        """The title of a column was clicked."""

        def __init__(self, column: int) -> None:
            super().__init__()
            self.column = column

    def __init__(self, *, opens: bool = True) -> None:
        super().__init__()
        self._opens = opens
        self.grid = EMPTY
        self.order: Sequence[int] = ()
        self.cursor = 0
        self._mark: tuple[int | None, bool] = (None, False)

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor, None without rows."""
        return self.grid.keys[self.order[self.cursor]] if self.order else None

    def show(self, grid: Grid, order: Sequence[int], mark: tuple[int | None, bool] = (None, False)) -> None:
        """Shows rows in this order; the cursor stays on its row. `mark` is (sorted column, descending)."""
        key = self.key
        self.grid, self.order, self._mark = grid, order, mark
        keys = [grid.keys[row] for row in order] if key is not None else []
        self.cursor = keys.index(key) if key in keys else min(self.cursor, max(len(order) - 1, 0))
        self.virtual_size = Size(sum(grid.widths) + GAP * len(grid.columns), len(order) + 1)
        self._go(self.cursor)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Whether an action is offered; rows that lead nowhere are not opened."""
        return self._opens or action != "open"

    def action_move(self, step: int) -> None:
        """Moves the cursor by some rows."""
        self._go(self.cursor + step)

    def action_page(self, step: int) -> None:
        """Moves the cursor by as many rows as are in sight."""
        self._go(self.cursor + step * max(self._room, 1))

    def action_go(self, row: int) -> None:
        """Moves the cursor to the first (0) or last (-1) row."""
        self._go(len(self.order) + row if row < 0 else row)

    def action_open(self) -> None:
        """Chooses the row under the cursor."""
        if self.key is not None:
            self.post_message(self.Chosen(self.key))

    @property
    def _room(self) -> int:
        """Rows in sight: the header takes a line."""
        return self.scrollable_content_region.height - 1

    def _go(self, row: int) -> None:
        self.cursor = max(0, min(row, len(self.order) - 1))
        top = round(self.scroll_y)
        if self.cursor < top or self.cursor >= top + self._room:
            top = self.cursor if self.cursor < top else self.cursor - max(self._room, 1) + 1
            self.scroll_to(y=top, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        """Keeps the cursor in sight."""
        self._go(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, a second one opens; on the header it sorts."""
        at = event.get_content_offset(self)
        if at is None:
            return
        row = self.scroll_offset.y + at.y - 1
        if at.y == 0:
            self._sort_at(self.scroll_offset.x + at.x)
        elif row < len(self.order):
            chosen = row == self.cursor
            self._go(row)
            if chosen:
                self.action_open()

    def _sort_at(self, x: int) -> None:
        for column, cells in enumerate(self.grid.widths):
            x -= cells + GAP
            if x < 0:
                self.post_message(self.Sorted(column))
                return

    def render_line(self, y: int) -> Strip:
        """One line of the widget: the header, a row, or nothing."""
        row = self.scroll_offset.y + y - 1
        style = self.rich_style
        if y == 0:
            style += self.get_component_rich_style("lines--header", partial=True)
            segments = self._segments([self._title(column) for column in range(len(self.grid.columns))], style, {})
        elif row < len(self.order):
            if row == self.cursor:
                style += self.get_component_rich_style("lines--cursor", partial=True)
            cells = self.grid.cells[self.order[row]]
            segments = self._segments(
                cells, style, {number: c for number, c in enumerate(self.grid.columns) if c.tones}
            )
        else:
            segments = []
        left, across = self.scroll_offset.x, self.scrollable_content_region.width
        return Strip(segments).crop_extend(left, left + across, style)

    def _title(self, column: int) -> str:
        sorted_column, descending = self._mark
        mark = (" ▼" if descending else " ▲") if column == sorted_column else ""
        return self.grid.columns[column].title + mark

    def _segments(self, texts: Sequence[str], style: Style, toned: dict[int, Column[object]]) -> list[Segment]:
        segments = []
        for number, (column, text, cells) in enumerate(zip(self.grid.columns, texts, self.grid.widths, strict=True)):
            cell_style = style + Style.parse(toned[number].tones.get(text, "none")) if number in toned else style
            fitted = f"{' ' * (cells - width(text))}{text}" if column.right else text
            segments.append(Segment(set_cell_size(fitted, cells) + " " * GAP, cell_style))
        return segments
