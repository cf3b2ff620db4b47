"""How a use case reports what happens to its caller.

Use cases print nothing: commands pass `render.terminal.TERMINAL`, the Python API and trainers pass `LOGGING`.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Progress(Protocol):
    """The progress of one task."""

    def advance(self, count: int = 1) -> None:
        """Adds finished steps."""

    def update(self, completed: int, *, total: int | None = None, note: str | None = None) -> None:
        """Sets the number of finished steps, and the total and the note behind it where they are given."""


class Reporter(Protocol):
    """Where messages, warnings and progress go."""

    def message(self, text: str) -> None:
        """One line of information."""

    def warning(self, text: str) -> None:
        """One line that the user should act on or know of; nothing failed."""

    def progress(self, description: str, total: int) -> AbstractContextManager[Progress]:
        """The progress of a task of `total` steps, shown while the block runs."""


class LoggingReporter:
    """The reporter of the Python API and of trainers: silent, unless the program configures `logging`."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("lapledger")
        if not self._logger.handlers:
            self._logger.addHandler(logging.NullHandler())  # else warnings would be printed on stderr

    def message(self, text: str) -> None:
        """Logged at level INFO."""
        self._logger.info("%s", text)

    def warning(self, text: str) -> None:
        """Logged at level WARNING."""
        self._logger.warning("%s", text)

    @contextmanager
    def progress(self, description: str, total: int) -> Iterator[Progress]:
        """Progress that nobody sees."""
        yield _Unseen()


class _Unseen:
    def advance(self, count: int = 1) -> None:
        pass

    def update(self, completed: int, *, total: int | None = None, note: str | None = None) -> None:
        pass


LOGGING = LoggingReporter()
