"""Rewards of programs: as a pure function of measurements, and through the ledger for completions of a policy.

Rollouts and rewards are facts: what a trainer learns from can be traced to raw timings. Who runs the programs is passed
in, as are fresh ids; no clock is read here.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lapledger.consumers.derive.rewarder import assign
from lapledger.consumers.training.completions import Completion
from lapledger.consumers.training.rollouts import Rolled, Training, declared, roll
from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import ProgramAdded
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import judge
from lapledger.replay.judging.rewards import reward
from lapledger.replay.measurements import ProblemMeasurements


def rewards(
    programs: Sequence[str],
    measurements: Sequence[ProblemMeasurements],
    criterion: Criterion,
    *,
    groups: Mapping[str, int] | None = None,
) -> list[float | None]:
    """The reward in [-1, 1] of each program, None where it is undecided or was never measured.

    A program is named by its id or given by its source, which stands for every measured program of the same text; None
    too where these have different rewards, as in groups that `multitask` pays differently.
    `groups` numbers the group of rollouts of each program id, for the reward `multitask`.
    """
    by_id: dict[str, float | None] = {}
    by_source: dict[int, set[float | None]] = defaultdict(set)
    for m in measurements:
        group = None
        if groups is not None:
            group = np.array([groups.get(program, -1) for program in m.programs], dtype=np.int64)
        rewards = reward(judge(m, criterion), criterion, group=group).tolist()
        values = [None if np.isnan(value) else value for value in rewards]
        by_id |= dict(zip(m.programs, values, strict=True))
        for number, of_source in zip(m.duplicate.tolist(), values, strict=True):
            by_source[number].add(of_source)

    def value(program: str) -> float | None:
        if program in by_id:
            return by_id[program]
        same = by_source.get(int(blob_digest(program.encode())[:15], 16), set())
        return next(iter(same)) if len(same) == 1 else None

    return [value(program) for program in programs]


Score = Callable[[Sequence[Completion]], list[float | None]]
"""What scores a batch of whole groups: the reward of each completion, None where it is undecided."""


class Runner(Protocol):
    """The edge of a scorer: who has programs run and waits for them, and who gives fresh words."""

    def new_id(self) -> str:
        """A fresh word for a batch; every id of the batch is derived from it."""
        ...

    def run(self, programs: Sequence[ProgramAdded]) -> str:
        """The campaign of all these programs, run beside references; some may have no outcome yet.

        A source is run once on a problem, and its executions count for every program that has it.
        """
        ...

    def admit(self) -> object:
        """Returns when what was appended is in the ledger."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """What rewards are asked for: a criterion under a name, and the campaign that its calibration comes from."""

    name: str
    criterion: Criterion
    source: str | None = None


class Scorer:
    """Scores completions through a ledger; threads may share it, one batch goes after another."""

    def __init__(
        self,
        ledger: Ledger,
        producer: Producer,
        runner: Runner,
        *,
        training: Training,
        question: Question,
    ) -> None:
        """Nothing is read or appended yet."""
        self._ledger, self._producer, self._runner = ledger, producer, runner
        self._training, self._question = training, question
        self._lock = threading.Lock()

    def score(self, completions: Sequence[Completion]) -> list[float | None]:
        """The reward of each completion; None where it is undecided: no outcome in time, or only sandbox faults.

        Appends the training run once, then groups, rollouts and programs, then what was run, then rewards. UserError
        when a problem is not in the ledger, or a group has two prompts.
        """
        if not completions:
            return []
        with self._lock:
            rolled = self._append(completions)
            campaign = self._runner.run(rolled.programs)
            question = self._question
            assign(
                self._ledger,
                self._producer,
                question.criterion,
                name=question.name,
                campaign=campaign,
                source=question.source,
            )
            self._runner.admit()
            values = self._values(campaign)
        return [values.get(program.program_id) for program in rolled.programs]

    def _append(self, completions: Sequence[Completion]) -> Rolled:
        questions = Questions(self._ledger)
        try:
            ids = _problems(questions, {completion.problem for completion in completions})
            known = questions.rows(
                "SELECT training_id FROM training_declared WHERE training_id = $id", id=self._training.id
            )
        finally:
            questions.close()
        batch = [(ids[completion.problem], completion) for completion in completions]
        rolled = roll(self._training, self._runner.new_id(), batch, self._ledger.blobs.put_many)
        first = [] if known else [declared(self._training, self._question.criterion)]
        self._producer.append([*first, *rolled.events])
        self._runner.admit()
        return rolled

    def _values(self, campaign: str) -> dict[str, float]:
        questions = Questions(self._ledger)
        try:
            rows = questions.rows(_REWARDS, campaign=campaign, criterion=self._question.criterion.hash)
        finally:
            questions.close()
        return {row["program_id"]: row["value"] for row in rows}


_REWARDS = "SELECT program_id, value FROM reward WHERE campaign_id = $campaign AND criterion_hash = $criterion"


def _problems(questions: Questions, names: set[str]) -> dict[str, str]:
    """The id of each problem that is named by its id or its slug; UserError when one is unknown or stored twice."""
    stored = questions.rows("SELECT problem_id, slug FROM problem ORDER BY problem_id")
    by_name = {}
    for name in sorted(names):
        ids = [row["problem_id"] for row in stored if name in (row["problem_id"], row["slug"])]
        if len(ids) != 1:
            known = ", ".join(ids or [row["slug"] for row in stored]) or "none; import some with `lap import icpc`"
            what = "is stored in several versions" if ids else "is not in the ledger"
            raise UserError(f"problem {name!r} {what}; name one of these: {known}")
        by_name[name] = ids[0]
    return by_name
