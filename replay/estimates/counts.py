"""Counts behind every estimate: one training run's samples on each problem, how many pass, how many are undecided.

No interval and no verdict is made here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import Status, Verdicts, one_campaign
from lapledger.replay.measurements import Floats, Ints, ProblemMeasurements


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """One training run's samples [P] on the problems where it has any."""

    run: str  # its model
    problems: tuple[str, ...]  # [P]
    samples: Ints  # [P]
    passed: Ints  # [P]
    undecided: Ints  # [P]
    excluded: tuple[str, ...] = ()  # problems that left the environment, as its filter keeps no test of theirs

    def rates(self, k: int, *, optimistic: bool = False) -> Floats:
        """pass@k of each problem [P] in [0, 1], undecided as not passed, or as passed; ReplayError where n < k."""
        short = [(p, int(n)) for p, n in zip(self.problems, self.samples, strict=True) if n < k]
        if short:
            name, n = short[0]
            raise ReplayError(
                f"pass@{k} of {self.run}: problem {name} has {n} candidates; choose k <= {n} or sample more"
            )
        passes = self.passed + self.undecided if optimistic else self.passed
        return np.array([pass_at_k(int(n), int(c), k) for n, c in zip(self.samples, passes, strict=True)])


def pass_at_k(n: int, c: int, k: int) -> float:
    """The unbiased estimate of pass@k in [0, 1] from n samples of which c pass: 1 - C(n-c, k) / C(n, k).

    ReplayError when n < k or the counts are not 1 <= k and 0 <= c <= n. Source: Chen et al. 2021 (arXiv 2107.03374).
    """
    if not (1 <= k <= n and 0 <= c <= n):
        raise ReplayError(f"pass@{k}: {c} of {n} samples pass; k must be 1 to {n} and the passes 0 to {n}")
    return _pass_at_k(n, c, k)


@lru_cache(maxsize=65536)
def _pass_at_k(n: int, c: int, k: int) -> float:
    every = math.comb(n, k)
    return (every - math.comb(n - c, k)) / every


def count(verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements], run: str) -> Counts:
    """The candidates of one model, problem by problem, as verdicts and measurements go in pairs.

    ReplayError when they do not match, are of several campaigns, or hold no candidate of that model.
    """
    if [v.problem for v in verdicts] != [m.problem for m in measurements]:
        raise ReplayError("estimate: verdicts and measurements name different problems; judge the same measurements")
    one_campaign(measurements)
    rows: list[tuple[str, int, int, int]] = []
    gone: list[str] = []
    for v, m in zip(verdicts, measurements, strict=True):
        status = v.status[m.candidate & (np.array(m.models) == run)]
        if not len(status):
            continue
        if v.excluded:
            gone.append(v.problem)
            continue
        passed, open_ = int((status == Status.PASS).sum()), int((status == Status.UNDECIDED).sum())
        rows.append((v.problem, len(status), passed, open_))
    if not rows and not gone:
        raise ReplayError(f"estimate: no candidate of {run!r} in these problems; name a model that has programs here")
    samples, passes, undecided = (np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2, 3))
    return Counts(run, tuple(row[0] for row in rows), samples, passes, undecided, tuple(gone))
