"""What services are given in tests: a clock that only the test moves, and a log that it can read."""

from dataclasses import dataclass, field
from typing import Any

from lapledger.consumers.services.service_loop import ServiceContext


@dataclass
class Desk:
    """The surroundings of all services of one test: one clock, in seconds, and the lines that they told."""

    seconds: float = 1000.0
    lines: list[dict[str, Any]] = field(default_factory=list)

    def context(self, holder: str, *, lasts_seconds: float = 30.0) -> ServiceContext:
        """What the service of that name is given."""

        def logger(event: str, *, level: str = "info", **fields: Any) -> None:
            self.lines.append({"event": event, "level": level, "holder": holder, **fields})

        return ServiceContext(
            holder=holder,
            lasts_ms=round(1000 * lasts_seconds),
            now_ms=lambda: round(1000 * self.seconds),
            monotonic=lambda: self.seconds,
            utc_now=lambda: "now",
            log=logger,
        )

    def logged(self, event: str, holder: str | None = None) -> list[dict[str, Any]]:
        """The lines about one thing, of one service or of all."""
        return [line for line in self.lines if line["event"] == event and holder in (None, line["holder"])]
