"""Who puts the questions of a study to its problems: this process, a device, or the processes of a Ray cluster.

The answers are the same, in the order of the problems; random numbers belong to a problem and a seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lapledger.cli.engine_options import NUMPY, How, connected, needs
from lapledger.replay.devices.questions import Asked, Weighing, on_device, one_by_one
from lapledger.replay.measurements import ProblemMeasurements

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Each:
    """A question to each of some problems, asked as a person wants it asked."""

    how: How = NUMPY
    seed: int = 0

    def __call__(self, problems: Sequence[ProblemMeasurements], question: Asked[Found], /) -> Iterator[Found]:
        """The answers, in the order of the problems.

        UserError where a package that is asked for is not installed; ReplayError where there is no GPU or no cluster.
        """
        if self.how.device and isinstance(question, Weighing):
            needs("torch", f"--device {self.how.device}", "models")
            return on_device(problems, question, self.how.device, self.seed)
        if self.how.engine == "ray":
            return iter(self._by_processes(problems, question))
        return one_by_one(problems, question, self.seed)

    def _by_processes(self, problems: Sequence[ProblemMeasurements], question: Asked[Found]) -> list[Found]:
        needs("ray", "--engine ray", "ray")
        from lapledger.replay.devices.spread import spread

        with connected(self.how):
            return spread(problems, question, engine="ray", workers=self.how.workers, seed=self.seed)


def by_processes(how: How) -> Each | None:
    """Who asks the processes of a cluster; None where none is asked for."""
    return Each(how) if how.engine == "ray" else None
