"""What the screens judge by: a criterion by name, and what was switched at the keyboard.

Light on purpose: it is imported before anything is drawn.
"""

from dataclasses import dataclass, replace
from typing import Any

from lapledger.replay.criteria import Criterion


@dataclass(frozen=True, slots=True)
class Question:
    """A criterion with its name; `tau` and `reading` replace the criterion's own once they are switched."""

    name: str
    base: Criterion
    tau: str | None = None
    reading: str | None = None

    @property
    def criterion(self) -> Criterion:
        """The criterion in force."""
        return replace(self.base, **self._switched())

    def description(self) -> str:
        """The criterion in force as text: tau, reading, its name with what was switched, and its hash."""
        criterion = self.criterion
        name = "+".join([self.name, *(f"{key}={value}" for key, value in self._switched().items())])
        return f"p_{criterion.tau} {criterion.reading}, {name} {criterion.hash[:12]}"

    def with_tau(self, tau: str) -> "Question":
        """The same question at another tau."""
        return replace(self, tau=tau)

    def with_next_reading(self) -> "Question":
        """The same question read as leaderboard, or as score where it was; where a score is no share, leaderboard."""
        to_score = self.criterion.reading == "leaderboard" and self.criterion.is_share
        return replace(self, reading="score" if to_score else "leaderboard")

    def _switched(self) -> dict[str, Any]:
        given = {"reading": self.reading, "tau": self.tau}
        return {key: value for key, value in given.items() if value not in (None, getattr(self.base, key))}
