"""The terminal's reporter: messages and warnings as lines on stderr, progress as a bar there.

Where stderr is no terminal no bar is drawn; a task that reports its state gets a line every few seconds instead.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import Progress

from lapledger.render.output import print_message, progress

LINE_SECONDS = 15
"""How often a line stands in for the bar where none is drawn."""


class TerminalProgress:
    """One bar. See `workflows.reporter.Progress`."""

    def __init__(self, bar: Progress, description: str) -> None:
        self._bar, self._task, self._description = bar, bar.task_ids[0], description
        self._printed = time.monotonic()

    def advance(self, count: int = 1) -> None:
        """Moves the bar by some steps."""
        self._bar.advance(self._task, count)

    def update(self, completed: int, *, total: int | None = None, note: str | None = None) -> None:
        """Sets the bar; prints a line where no bar is drawn and the last one is old."""
        fields: dict[str, Any] = {} if note is None else {"note": note}
        self._bar.update(self._task, completed=completed, total=total, **fields)
        if self._bar.disable and time.monotonic() - self._printed > LINE_SECONDS:
            self._printed = time.monotonic()
            task = self._bar.tasks[0]
            suffix = f" ({task.fields['note']})" if task.fields["note"] else ""
            print_message(f"{self._description}: {completed} of {task.total:.0f} done{suffix}")


class TerminalReporter:
    """The reporter of the commands. See `workflows.reporter.Reporter`."""

    def message(self, text: str) -> None:
        """One line on stderr."""
        print_message(text)

    def warning(self, text: str) -> None:
        """One line on stderr that begins with `warning: `."""
        print_message(f"warning: {text}")

    @contextmanager
    def progress(self, description: str, total: int) -> Iterator[TerminalProgress]:
        """A bar on stderr."""
        with progress(description, total) as bar:
            yield TerminalProgress(bar, description)


TERMINAL = TerminalReporter()
