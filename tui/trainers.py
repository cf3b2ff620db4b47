"""The edge of a trainer: reward functions for TRL and verl that run programs and read rewards through a ledger.

    from tui.trainers import Rewards, trl_rewards

    rewards = trl_rewards(Rewards(ledger=".lap", training="run1", criterion="top-30"))
    GRPOTrainer(..., reward_funcs=[rewards])

Trainers call from any thread: no signal is taken here, and nothing is printed. Clock and fresh ids are met here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui.criteria import read_criterion
from tui.session import Writing
from tui.settings import Settings, read_settings


@dataclass(frozen=True, slots=True)
class Rewards:
    """What a trainer's rewards are: which ledger, training run and criterion, and who runs the programs.

    `where` is `here` (in this process, in its sandbox) or `pool` (by `lap worker`s that share the ledger). After
    `timeout` seconds what has no outcome is undecided. `references` of N take every N-th reference of a problem along,
    0 none; `settings` are those of `lap run`, such as `limit` and `slots`.
    """

    training: str
    ledger: str | None = None
    criterion: str | None = None
    model: str = "unknown"
    data: str = "unknown"
    seed: int = 0
    temperature: float = 1.0
    where: str = "here"
    timeout: float = 600.0
    references: int = 1
    source: str | None = None  # campaign that the criterion's calibration comes from
    settings: dict[str, Any] = field(default_factory=dict)


class Scoring:
    """An open ledger that scores completions; close it when the training ends."""

    def __init__(self, asked: Rewards) -> None:
        """Opens the ledger and reads the criterion; UserError in one line when either is not there."""
        from consumers.rollouts import Training
        from consumers.scoring import Question, Scorer
        from ledger.errors import UserError
        from ledger.store.opened import open_ledger
        from tui.trainees import Runner

        if asked.where not in ("here", "pool"):
            raise UserError(f"where={asked.where!r}: programs run 'here' or in the 'pool' of workers")
        settings: Settings = read_settings(ledger=asked.ledger, **asked.settings)
        name, criterion = read_criterion(asked.criterion, {})
        self._open = Writing(open_ledger(settings.location), f"trainer {asked.training}")
        self._open.admit()
        runner = Runner(self._open, settings, here=asked.where == "here", timeout=asked.timeout, every=asked.references)
        self.scorer: Scorer = Scorer(
            self._open.ledger,
            self._open.producer,
            runner,
            training=Training(asked.training, asked.model, asked.data, asked.seed, asked.temperature),
            question=Question(name, criterion, asked.source),
        )

    def close(self) -> None:
        """Closes the producer's epoch and the ledger."""
        self._open.close()


def trl_rewards(asked: Rewards, *, column: str = "problem", name: str = "lapledger") -> Callable[..., Any]:
    """A function for TRL's `reward_funcs`; the ledger opens with the first batch and stays open."""
    from consumers.adapters.trl import reward_function

    return reward_function(_lazily(asked), column=column, name=name)


def verl_rewards(asked: Rewards, *, batched: bool = True, undecided: float = float("nan")) -> Callable[..., Any]:
    """A function for verl's `custom_reward_function`: for the reward manager `batch`, or for one answer a call."""
    from consumers.adapters import verl

    make = verl.batch_reward_function if batched else verl.reward_function
    return make(_lazily(asked), undecided=undecided)


def _lazily(asked: Rewards) -> Callable[[Sequence[Any], int], list[float | None]]:
    """Opens the ledger in the process that scores: trainers copy their reward function to others."""
    held: list[Scoring] = []

    def score(completions: Sequence[Any], policy: int) -> list[float | None]:
        if not held:
            held.append(Scoring(asked))
        return held[0].scorer.score(completions, policy)

    return score
