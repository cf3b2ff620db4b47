"""Questions that are put to each problem by itself, so that they can be asked here, on a device or by many processes.

What is asked is plain data of a class that every process can import; where it is asked is said elsewhere.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Verdicts, judge
from lapledger.replay.measurements import ProblemMeasurements

Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class Asked(Protocol[Found_co]):
    """What is asked of one problem: plain data of a class that every process can import."""

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> Found_co:
        """The answer; it depends on the problem and on the random numbers alone."""


class Weighing(Generic[Found]):
    """A question that is answered from the verdicts of some criteria on one problem."""

    @abstractmethod
    def under(self) -> Sequence[Criterion]:
        """The criteria whose verdicts the answer is made from."""

    @abstractmethod
    def told(self, m: ProblemMeasurements, verdicts: Sequence[Verdicts], random: np.random.Generator) -> Found:
        """The answer from the verdicts on the problem as it was taken, one a criterion."""

    def taken(self, m: ProblemMeasurements) -> ProblemMeasurements:
        """The part of a problem that is judged."""
        return m

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> Found:
        """The answer from verdicts that are made here."""
        part = self.taken(m)
        return self.told(part, [judge(part, criterion) for criterion in self.under()], random)


class Each(Protocol):
    """Somebody who puts a question to each of some problems."""

    def __call__(self, problems: Sequence[ProblemMeasurements], question: Asked[Found], /) -> Iterator[Found]:
        """The answers, in the order of the problems."""


def one_by_one(problems: Sequence[ProblemMeasurements], question: Asked[Found], seed: int = 0) -> Iterator[Found]:
    """The answers, made here one after the other, each with the random numbers of its problem under the seed."""
    for m in problems:
        yield question(m, generator(seed, m.problem))


def on_device(
    problems: Sequence[ProblemMeasurements], question: Weighing[Found], device: str, seed: int = 0
) -> Iterator[Found]:
    """The same from verdicts that are ranked on the device `cpu` or `cuda`, all problems of a criterion at once.

    ReplayError where there is no such device.
    """
    from lapledger.replay.devices.batches import judge_on

    parts = [question.taken(m) for m in problems]
    columns = [judge_on(parts, criterion, device) for criterion in question.under()]
    for row, (m, part) in enumerate(zip(problems, parts, strict=True)):
        yield question.told(part, [column[row] for column in columns], generator(seed, m.problem))


def generator(seed: int, problem: str) -> np.random.Generator:
    """The random numbers of one problem under a seed, 0 or larger: its own, whoever draws them and in what order."""
    words = np.frombuffer(hashlib.sha256(problem.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64([seed, *words.tolist()]))
