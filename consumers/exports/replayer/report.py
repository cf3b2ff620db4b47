"""The result of a check of a bundle: lines, an exit code, and how many tables could not be replayed."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

WRONG, UNREPLAYED = 1, 3
"""Exit codes: something differs; all that was checked holds, and not every table could be replayed."""
_COLUMNS = ("model", "problems", "programs", "passed", "failed", "undecided", "value", "upper_bound")


@dataclass
class Report:
    """The result so far. A table is one of the bundle's, or that of a named replay."""

    proven: bool = False
    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    empty: bool = False  # the bundle holds no table of its own
    tables: int = 0
    unreplayed: int = 0

    def table(self, name: str, digest: str, wrong: Iterable[str]) -> None:
        """Adds a table that was replayed, with what differs."""
        lines = [f"{name}: {line}" for line in wrong]
        self.tables += 1
        self.lines.append(f"{'DIFFERS' if lines else 'replayed'}: {name} ({digest[:12]})")
        self.wrong += lines

    def not_replayed(self, name: str, reason: object) -> None:
        """Adds a table that could not be replayed, and why."""
        self.tables += 1
        self.unreplayed += 1
        self.lines.append(f"not replayed: {name}: {reason}")

    @property
    def code(self) -> int:
        """0 when all holds and was replayed, else WRONG or UNREPLAYED."""
        return WRONG if self.wrong else UNREPLAYED if self.unreplayed or self.empty else 0

    @property
    def summary(self) -> str:
        """The last line."""
        if self.wrong:
            return "damaged"
        proven = "proven" if self.proven else "not proven"
        if self.empty:
            return f"{proven}; no table in the bundle"
        if self.unreplayed:
            return f"{proven}; {self.unreplayed} of {self.tables} tables not replayed"
        return "proven and replayed" if self.proven else "replayed, not proven"

    def write(self, table: dict[str, Any] | None, *, as_json: bool) -> None:
        """Prints the result, and the table that was requested."""
        if as_json:
            counts = {"tables": self.tables, "unreplayed": self.unreplayed, "proven": self.proven and not self.wrong}
            values = {"wrong": self.wrong, "lines": self.lines, **counts, "table": table}
            sys.stdout.write(json.dumps(values, indent=1) + "\n")
            return
        for line in (*self.lines, *(f"WRONG: {line}" for line in self.wrong)):
            sys.stdout.write(f"{line}\n")
        for row in table["estimates"] if table else ():
            sys.stdout.write("  ".join(f"{name} {row[name]}" for name in _COLUMNS) + "\n")
        sys.stdout.write(f"{self.summary}\n")
