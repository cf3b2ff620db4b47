"""What the commands that ask many questions share: one campaign read once, and the criteria that are asked of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import UserError
from replay.criteria import Criterion
from replay.measurements import ProblemMeasurements
from tui.criteria import read_criterion

if TYPE_CHECKING:
    from ledger.questions import Questions


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One campaign at one cut, with the stored references that a calibration adds."""

    campaign: str
    cut: str
    problems: Sequence[ProblemMeasurements]
    calibration: str  # its id; empty without one

    @property
    def makers(self) -> list[str]:
        """Who made the candidates, in alphabetical order."""
        return sorted({m.makers[row] for m in self.problems for row in m.candidate.nonzero()[0]})

    @property
    def title(self) -> str:
        """The campaign and its size in words."""
        count = len(self.problems)
        return f"campaign {self.campaign}: {count} {'problem' if count == 1 else 'problems'}"


def measured(questions: "Questions", campaign: str | None, criterion: Criterion, source: str | None = None) -> Measured:
    """The measurements for a criterion, its pool calibrated where it asks so; UserError where that is not stored."""
    from consumers.calibrator import find_calibration
    from replay.shell import load, prepared

    snapshot = load(questions, campaign)
    calibration = find_calibration(questions, snapshot.name, criterion, source=source)
    problems = [prepared(snapshot, m, criterion, calibration) for m in snapshot.problems]
    return Measured(snapshot.name, snapshot.cut, problems, calibration.calibration_id if calibration else "")


def named_criteria(words: Sequence[str], default: Sequence[tuple[str, Criterion]]) -> dict[str, Criterion]:
    """The criteria that words name (presets and files), or the default ones, by name, each once.

    UserError when two differ under one name, or when one asks for a calibration: these tables compare one pool.
    """
    found: dict[str, Criterion] = {}
    for name, criterion in [read_criterion(word, {}) for word in words] or default:
        if found.setdefault(name, criterion) != criterion:
            raise UserError(f"--criterion {name}: two criteria have this name; rename one of the files")
        if criterion.calibration != "none":
            raise UserError(f"--criterion {name}: it asks for a calibration; use `lap replay` or `lap sweep` for it")
    return found


def small_print(found: Measured, criteria: Sequence[tuple[str, Criterion]], more: str = "") -> str:
    """The words below a picture: cut, then the hash of every criterion."""
    hashes = ", ".join(f"{name} {criterion.hash[:12]}" for name, criterion in criteria)
    calibrated = f", calibration {found.calibration[:12]}" if found.calibration else ""
    word = "criterion" if len(criteria) == 1 else "criteria"
    return f"cut {found.cut}{calibrated}{'; ' if more else ''}{more}\n{word} {hashes}"
