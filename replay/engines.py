"""Who judges: numpy, machine code (numba), a device (torch) or a cluster (ray), chosen here and nowhere else.

The verdicts are the same to the bit, so a choice is one of time and memory. An engine takes a criterion only where it
knows every key that the criterion sets; else `auto` and `torch` leave the problem to numpy, and `numba` refuses.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from lapledger.replay.batches.problem_batches import is_common, judge_many
from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.questions import ProblemQuestion, VerdictQuestion, on_device, one_by_one
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import Verdicts, judge
from lapledger.replay.measurements import ProblemMeasurements

ENGINES = ("auto", "numpy", "numba", "torch", "ray")
DEVICES = ("cpu", "cuda")
MACHINE_CODE_FROM = 5_000_000
"""Runs times criteria from which on machine code is worth its loading, which takes about a second."""

Answer = TypeVar("Answer")


def nothing(_count: int) -> None:
    """Ignores a report of progress."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine. ReplayError for a name or a device that is none."""

    name: str = "auto"  # numpy, or machine code where there is so much to judge that its loading pays
    device: str = "cpu"  # of torch
    workers: int | None = None  # problems that a cluster judges at a time; None for one a processor
    session: Callable[[], AbstractContextManager[None]] = nullcontext  # entered while a cluster judges

    def __post_init__(self) -> None:
        """Raise ReplayError if the engine or its device has no such name."""
        for what, value, known in (("engine", self.name, ENGINES), ("device", self.device, DEVICES)):
            if value not in known:
                raise ReplayError(f"{what} {value!r} is not known; use one of {', '.join(known)}")

    def judge(
        self,
        problems: Sequence[ProblemMeasurements],
        criterion: Criterion,
        on_progress: Callable[[int], object] = nothing,
        *,
        keep: bool = False,
        criteria: int = 1,
    ) -> list[Verdicts]:
        """The verdicts on every problem, in their order; `on_progress` gets the number of problems of each step.

        With `keep` numpy keeps what does not depend on tau. `criteria` is how many are put to these problems in all.

        ReplayError where `numba` does not know the criterion, and where there is no such device or cluster.
        """
        at_once = self._judge_at_once(problems, criterion, criteria)
        if at_once is not None:
            on_progress(len(problems))
            return at_once
        verdicts = []
        for m in problems:
            verdicts.append(judge(m, criterion, hold=keep))
            on_progress(1)
        return verdicts

    def _judge_at_once(
        self, problems: Sequence[ProblemMeasurements], criterion: Criterion, criteria: int
    ) -> list[Verdicts] | None:
        """The verdicts by an engine that takes all problems together; None where numpy takes one after another."""
        if self.name == "torch":
            from lapledger.replay.devices.batches import judge_on

            return judge_on(problems, criterion, self.device)
        if self.name == "ray":
            from lapledger.replay.devices.spread import judge_by

            with self.session():
                return judge_by("ray", problems, criterion=criterion, workers=self.workers)
        return (
            judge_many(problems, criterion) if self.uses_machine_code(criterion, criteria * runs_of(problems)) else None
        )

    def uses_machine_code(self, criterion: Criterion, runs: int) -> bool:
        """Whether so many runs times criteria are judged in machine code.

        ReplayError where `numba` does not know the criterion.
        """
        if self.name == "numba" and not is_common(criterion):
            raise ReplayError(
                f"engine 'numba' does not know this criterion ({criterion.canonical().decode()}); use 'auto' or 'numpy'"
            )
        return self.name == "numba" or (self.name == "auto" and runs >= MACHINE_CODE_FROM and is_common(criterion))

    def answer(
        self, problems: Sequence[ProblemMeasurements], question: ProblemQuestion[Answer], seed: int = 0
    ) -> Iterator[Answer]:
        """What a question finds on each problem, in their order, each with the random numbers of its problem and seed.

        ReplayError where there is no such device or cluster.
        """
        if self.name == "torch" and isinstance(question, VerdictQuestion):
            return on_device(problems, question, self.device, seed)
        if self.name == "ray":
            from lapledger.replay.devices.spread import spread

            with self.session():
                return iter(spread(problems, question, engine="ray", workers=self.workers, seed=seed))
        return one_by_one(problems, question, seed)


AUTO = Engine()
"""Numpy in this process, and machine code for so many runs that its loading pays: what is used where none is named."""


@dataclass(frozen=True, slots=True)
class ProblemRunner:
    """A question to each of some problems, by an engine and under a seed."""

    engine: Engine = AUTO
    seed: int = 0

    def __call__(
        self, problems: Sequence[ProblemMeasurements], question: ProblemQuestion[Answer], /
    ) -> Iterator[Answer]:
        """The answers, in the order of the problems; ReplayError as `Engine.answer` raises it."""
        return self.engine.answer(problems, question, self.seed)


def runs_of(problems: Sequence[ProblemMeasurements]) -> int:
    """How many (program, test) pairs there are."""
    return sum(m.outcome.size for m in problems)
