"""The edge of a trainer: reward functions for TRL and verl that run programs and read rewards through a ledger.

    from lapledger.trainers import Rewards, trl_rewards

    rewards = trl_rewards(Rewards(ledger=".lap", training="run1", criterion="top-30"), num_generations=8)
    GRPOTrainer(..., reward_funcs=[rewards])

Trainers call from any thread: no signal is taken here, and nothing is printed. Clock and fresh ids are met here.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lapledger.cli.criterion_options import read_criterion
from lapledger.settings import Settings, read_settings
from lapledger.workflows.reporter import LOGGING
from lapledger.workflows.session import Writing

if TYPE_CHECKING:
    from lapledger.consumers.training.completions import Completion
    from lapledger.consumers.training.scoring import Score


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
    temperature: float | None = None
    where: str = "here"
    timeout: float = 600.0
    references: int = 1
    source: str | None = None  # campaign that the criterion's calibration comes from
    settings: dict[str, Any] = field(default_factory=dict)


class Scoring:
    """An open ledger that scores completions; close it when the training ends."""

    def __init__(self, asked: Rewards, *, alone: bool = False) -> None:
        """Opens the ledger and reads the criterion; UserError in one line when either is not there, or when the
        training run has no name.

        With `alone` it is the only one on this machine for its training run, or UserError.
        """
        from lapledger.consumers.training.rollouts import Training
        from lapledger.consumers.training.scoring import Question, Scorer
        from lapledger.ledger.errors import UserError
        from lapledger.ledger.store.open_ledger import open_ledger
        from lapledger.workflows.execution.rollout_runner import Runner, hold_training

        if asked.where not in ("here", "pool"):
            raise UserError(f"where={asked.where!r}: programs run 'here' or in the 'pool' of workers")
        training = Training(asked.training, asked.model, asked.data, asked.seed, asked.temperature)
        settings: Settings = read_settings(ledger=asked.ledger, **asked.settings)
        name, criterion = read_criterion(asked.criterion, {})
        self._open = Writing(open_ledger(settings.location), f"trainer {asked.training}", LOGGING)
        try:
            self._alone = hold_training(self._open.ledger.root, asked.training) if alone else None
        except UserError:
            self._open.close()
            raise
        self._open.admit()
        runner = Runner(self._open, settings, here=asked.where == "here", timeout=asked.timeout, every=asked.references)
        self.scorer: Scorer = Scorer(
            self._open.ledger,
            self._open.producer,
            runner,
            training=training,
            question=Question(name, criterion, asked.source),
        )

    def close(self) -> None:
        """Closes the producer's epoch and the ledger."""
        self._open.close()
        if self._alone is not None:
            self._alone.close()


def trl_rewards(
    asked: Rewards, *, num_generations: int | Callable[[], int], column: str = "problem", name: str = "lapledger"
) -> Callable[..., Any]:
    """A function for TRL's `reward_funcs`; the ledger opens with the first batch and stays open.

    `num_generations` is the trainer's; a function is asked at each call, for trainers that evaluate with another.
    """
    from lapledger.consumers.training.trl import reward_function

    return reward_function(_lazily(asked), num_generations=num_generations, column=column, name=name)


def verl_rewards(
    asked: Rewards,
    *,
    n: int | Callable[[Mapping[str, Any]], int],
    key: Callable[[Mapping[str, Any]], Hashable] | None = None,
    step: int | Callable[[], int | None] | None = None,
    batched: bool = False,
    patience: float = 600.0,
    undecided: float = float("nan"),
) -> Callable[..., Any]:
    """A function for verl's `custom_reward_function`, awaited for one answer a call, or with `batched` for a batch.

    `n` answers are a group: a number, or a function of `extra_info`. `key` names a row's group, by default by its
    `uid` or `index`; `step` is the policy's where verl does not tell it. A group may take `patience` seconds to come.
    """
    from lapledger.consumers.training import verl

    rows = verl.Rows(n, key, step, undecided)
    if batched:
        return verl.batch_reward_function(_lazily(asked), rows)
    return verl.reward_function(_lazily(asked, alone=True), rows, patience=patience)


def _lazily(asked: Rewards, *, alone: bool = False) -> "Score":
    """Opens the ledger in the process that scores: trainers copy their reward function to others.

    UserError with `alone` when another one scores the same training run.
    """
    held: list[Scoring] = []

    def score(completions: "Sequence[Completion]") -> list[float | None]:
        if not held:
            held.append(Scoring(asked, alone=alone))
        return held[0].scorer.score(completions)

    return score
