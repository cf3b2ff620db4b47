"""What a check of a bundle came to, and how it is told: lines, an exit code, and how much could not be replayed."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

WRONG, UNREPLAYED = 1, 3
"""Exit codes: something differs; all that was checked holds, and not every table could be replayed."""
_SHOWN = ("model", "problems", "programs", "passed", "failed", "undecided", "value", "upper_bound")


@dataclass
class Report:
    """What was found so far. A table is one of the bundle's, or that of a named replay."""

    proven: bool = False
    said: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    empty: bool = False  # the bundle holds no table of its own
    tables: int = 0
    unreplayed: int = 0

    def table(self, name: str, digest: str, wrong: Iterable[str]) -> None:
        """Takes in a table that was replayed, with what differs."""
        lines = [f"{name}: {line}" for line in wrong]
        self.tables += 1
        self.said.append(f"{'DIFFERS' if lines else 'replayed'}: {name} ({digest[:12]})")
        self.wrong += lines

    def not_replayed(self, name: str, why: object) -> None:
        """Takes in a table that could not be replayed, and why."""
        self.tables += 1
        self.unreplayed += 1
        self.said.append(f"not replayed: {name}: {why}")

    @property
    def code(self) -> int:
        """0 when all holds and was replayed, else WRONG or UNREPLAYED."""
        return WRONG if self.wrong else UNREPLAYED if self.unreplayed or self.empty else 0

    @property
    def end(self) -> str:
        """The last line."""
        if self.wrong:
            return "damaged"
        proven = "proven" if self.proven else "not proven"
        if self.empty:
            return f"{proven}; no table in the bundle"
        if self.unreplayed:
            return f"{proven}; {self.unreplayed} of {self.tables} tables not replayed"
        return "proven and replayed" if self.proven else "replayed, not proven"

    def tell(self, table: dict[str, Any] | None, *, as_json: bool) -> None:
        """Prints all of it, and the table that was asked for."""
        if as_json:
            counts = {"tables": self.tables, "unreplayed": self.unreplayed, "proven": self.proven and not self.wrong}
            told = {"wrong": self.wrong, "said": self.said, **counts, "table": table}
            sys.stdout.write(json.dumps(told, indent=1) + "\n")
            return
        for line in (*self.said, *(f"WRONG: {line}" for line in self.wrong)):
            sys.stdout.write(f"{line}\n")
        for row in table["estimates"] if table else ():
            sys.stdout.write("  ".join(f"{name} {row[name]}" for name in _SHOWN) + "\n")
        sys.stdout.write(f"{self.end}\n")
