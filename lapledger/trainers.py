"""Reward functions for TRL and verl that run programs and take their rewards from a ledger.

    from lapledger.trainers import Rewards, trl_rewards

    rewards = trl_rewards(Rewards(ledger=".lap", training="run1", criterion="top-30"), num_generations=8)
    GRPOTrainer(..., reward_funcs=[rewards])

Trainers call from any thread: no signal handler is set and nothing is printed. Clock and fresh ids enter here.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lapledger.settings import Settings, read_settings
from lapledger.workflows.analysis.criterion_arguments import read_criterion
from lapledger.workflows.reporter import LOGGING
from lapledger.workflows.session import LedgerWriter

if TYPE_CHECKING:
    from lapledger.consumers.training.completions import Completion
    from lapledger.consumers.training.scoring import Score


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards of a training run: its ledger and criterion, and who runs the programs.

    `where` is `here` (in this process, in its sandbox) or `pool` (by `lap worker`s that share the ledger). After
    `timeout` seconds what has no outcome is undecided. `references` of N runs every N-th reference of a problem too,
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

    def __init__(self, rewards: Rewards, *, alone: bool = False) -> None:
        """Open the ledger and read the criterion; UserError if either is missing or the training run has no name.

        With `alone` also UserError if another process on this machine scores the same training run.
        """
        from lapledger.consumers.training.rollouts import Training
        from lapledger.consumers.training.scoring import Question, Scorer
        from lapledger.ledger.errors import UserError
        from lapledger.ledger.store.open_ledger import open_ledger
        from lapledger.workflows.execution.rollout_runner import Runner, hold_training

        if rewards.where not in ("here", "pool"):
            raise UserError(f"where={rewards.where!r}: programs run 'here' or in the 'pool' of workers")
        training = Training(rewards.training, rewards.model, rewards.data, rewards.seed, rewards.temperature)
        settings: Settings = read_settings(ledger=rewards.ledger, **rewards.settings)
        name, criterion = read_criterion(rewards.criterion, {})
        self._open = LedgerWriter(open_ledger(settings.location), f"trainer {rewards.training}", LOGGING)
        try:
            self._alone = hold_training(self._open.ledger.root, rewards.training) if alone else None
        except UserError:
            self._open.close()
            raise
        self._open.admit()
        runner = Runner(
            self._open, settings, here=rewards.where == "here", timeout=rewards.timeout, every=rewards.references
        )
        self.scorer: Scorer = Scorer(
            self._open.ledger,
            self._open.producer,
            runner,
            training=training,
            question=Question(name, criterion, rewards.source),
        )

    def close(self) -> None:
        """Close the producer's epoch and the ledger."""
        self._open.close()
        if self._alone is not None:
            self._alone.close()


def trl_rewards(
    rewards: Rewards, *, num_generations: int | Callable[[], int], column: str = "problem", name: str = "lapledger"
) -> Callable[..., Any]:
    """A function for TRL's `reward_funcs`; the ledger opens with the first batch and stays open.

    `num_generations` is the trainer's; a function is called for each batch, for trainers that evaluate with another.
    """
    from lapledger.consumers.training.trl import reward_function

    return reward_function(_lazily(rewards), num_generations=num_generations, column=column, name=name)


def verl_rewards(
    rewards: Rewards,
    *,
    n: int | Callable[[Mapping[str, Any]], int],
    key: Callable[[Mapping[str, Any]], Hashable] | None = None,
    step: int | Callable[[], int | None] | None = None,
    batched: bool = False,
    patience: float = 600.0,
    undecided: float = float("nan"),
) -> Callable[..., Any]:
    """A function for verl's `custom_reward_function`, awaited for one completion, or with `batched` called for a batch.

    `n` completions are a group: a number, or a function of `extra_info`. `key` names a row's group, by default by its
    `uid` or `index`; `step` is the policy's where verl does not provide it. A group must be complete within `patience`
    seconds.
    """
    from lapledger.consumers.training import verl

    rows = verl.Rows(n, key, step, undecided)
    if batched:
        return verl.batch_reward_function(_lazily(rewards), rows)
    return verl.reward_function(_lazily(rewards, alone=True), rows, patience=patience)


def _lazily(rewards: Rewards, *, alone: bool = False) -> "Score":
    """The scoring function; it opens the ledger at its first call, as trainers copy it to other processes.

    With `alone` that call raises UserError if another process scores the same training run.
    """
    sessions: list[Scoring] = []

    def score(completions: "Sequence[Completion]") -> list[float | None]:
        if not sessions:
            sessions.append(Scoring(rewards, alone=alone))
        return sessions[0].scorer.score(completions)

    return score
