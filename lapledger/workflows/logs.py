"""What services log on stderr: lines for a person at a terminal, JSON lines for everything else.

The only home of structlog. Nothing secret and no payload is ever given to it.
"""

import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal

from lapledger.consumers.services.service_loop import Logger
from lapledger.ledger.redaction import redacted

Form = Literal["auto", "text", "json"]


def make_log(form: Form, **always: str) -> Logger:
    """A log whose every line carries `always`; `auto` is text on a terminal and JSON elsewhere."""
    import structlog  # half a second with its colours, which only services need

    terminal = sys.stderr.isatty()
    text = form == "text" or (form == "auto" and terminal)
    colors = terminal and not os.environ.get("NO_COLOR")
    bound: dict[str, Any] = {**always}
    logger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _in_order,
            _redacted,
            structlog.dev.ConsoleRenderer(colors=colors) if text else structlog.processors.JSONRenderer(),
        ],
        **bound,
    )

    def log(event: str, *, level: str = "info", **fields: Any) -> None:
        kept = {name: value for name, value in fields.items() if value is not None}
        getattr(logger, level)(event, level=level, **kept)

    return log


def _redacted(_logger: object, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """The same line, its texts without secrets."""
    return {name: redacted(value) if isinstance(value, str) else value for name, value in line.items()}


def _in_order(_logger: object, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """The same line, time, level and event first."""
    return {**{name: line[name] for name in ("timestamp", "level", "event")}, **line}
