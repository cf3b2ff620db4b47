"""Questions put to each problem by itself, so that they can run here, on a device or in many processes.

A question is plain data of a class that every process can import; where it runs is decided elsewhere.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Verdicts, judge
from lapledger.replay.measurements import ProblemMeasurements

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


class ProblemQuestion(Protocol[Answer_co]):
    """A question to one problem: plain data of a class that every process can import."""

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> Answer_co:
        """The answer; it depends on the problem and on the random numbers alone."""


class VerdictQuestion(Generic[Answer]):
    """A question that is answered from the verdicts of some criteria on one problem."""

    @abstractmethod
    def under(self) -> Sequence[Criterion]:
        """The criteria whose verdicts the answer is made from."""

    @abstractmethod
    def from_verdicts(
        self, m: ProblemMeasurements, verdicts: Sequence[Verdicts], random: np.random.Generator
    ) -> Answer:
        """The answer from the verdicts on the problem as it was taken, one a criterion."""

    def part_of(self, m: ProblemMeasurements) -> ProblemMeasurements:
        """The part of a problem that is judged."""
        return m

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> Answer:
        """The answer from verdicts that are made here."""
        part = self.part_of(m)
        return self.from_verdicts(part, [judge(part, criterion) for criterion in self.under()], random)


class Runner(Protocol):
    """Runs a question on each of some problems."""

    def __call__(
        self, problems: Sequence[ProblemMeasurements], question: ProblemQuestion[Answer], /
    ) -> Iterator[Answer]:
        """The answers, in the order of the problems."""


def one_by_one(
    problems: Sequence[ProblemMeasurements], question: ProblemQuestion[Answer], seed: int = 0
) -> Iterator[Answer]:
    """The answers, made here one after the other, each with the random numbers of its problem under the seed."""
    for m in problems:
        yield question(m, generator(seed, m.problem))


def on_device(
    problems: Sequence[ProblemMeasurements], question: VerdictQuestion[Answer], device: str, seed: int = 0
) -> Iterator[Answer]:
    """The same from verdicts that are ranked on the device `cpu` or `cuda`, all problems of a criterion at once.

    ReplayError where there is no such device.
    """
    from lapledger.replay.devices.batches import judge_on

    parts = [question.part_of(m) for m in problems]
    columns = [judge_on(parts, criterion, device) for criterion in question.under()]
    for row, (m, part) in enumerate(zip(problems, parts, strict=True)):
        yield question.from_verdicts(part, [column[row] for column in columns], generator(seed, m.problem))


def generator(seed: int, problem: str) -> np.random.Generator:
    """The random numbers of one problem under a seed, 0 or larger, whichever process draws, in whatever order."""
    key = np.frombuffer(hashlib.sha256(problem.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64([seed, *key.tolist()]))
