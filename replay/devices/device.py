"""Ranks and quality in torch, on a CPU or a GPU: many problems at once, the same integers as `ranks` and `quality`.

The one home of torch in this room. All that is decided is decided in whole numbers, so the order in which a device adds
changes nothing. `batches` makes verdicts of it; no measurement is read here and no limit decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.tasks import Ends, Padded, Task, blocks, unpadded
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.quality import PAIRWISE, Ranks
from lapledger.replay.measurements import Ints

Tensor = torch.Tensor
Device = torch.device
PAIRS = 2**28
"""Pairs of references that are compared at a time: a bound on memory, never on results."""


def find_device(name: str) -> Device:
    """The device of that name, `cpu` or `cuda`; ReplayError where torch finds no GPU."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ReplayError(
            f"device 'cuda': torch {torch.__version__} finds no GPU on this machine; use 'cpu', or run where a GPU and"
            " its driver are (`nvidia-smi` lists them)"
        )
    return Device(name)


KNOWN_KEYS = frozenset(
    [
        "tau",
        "reading",
        "statistic",
        "percentile",
        "correctness",
        "interface",
        "timeouts",
        "timeout_ms",
        "own_limits",
        "keep",
        "keep_ms",
        "keep_chars",
        "keep_share",
        "limit_ms",
        "limit_quantile",
        "limit_ranked",
        "limit_factor",
        "in_time",
        "clock",
        "estimator",
        "startup",
        "calibration",
        "min_references",
        "missing",
        "reward",
        "shape",
        "buckets",
        "split",
        "weight",
    ]
)
"""Keys of a criterion that a device knows: what they ask besides ranks numpy decides. Any other must be unset."""


def knows(criterion: Criterion) -> bool:
    """Whether a device may count ranks for a criterion; a key that is not listed here leaves it to numpy."""
    return criterion.sets_only(KNOWN_KEYS)


def in_torch(criterion: Criterion) -> bool:
    """Whether scores are made on the device: a mean of percentiles that are sums over single references, or none."""
    if not knows(criterion):
        return False
    return not criterion.needs_pool or (criterion.statistic == "mean" and criterion.percentile in PAIRWISE)


def counts(rising: Ints, mine: Ints, device: Device) -> tuple[Ints, Ints]:
    """How many references, sorted [N, T], are smaller, and how many smaller or equal, than each duration [M, T]."""
    theirs, durations = (torch.from_numpy(np.ascontiguousarray(values.T)).to(device) for values in (rising, mine))
    less, upto = (torch.searchsorted(theirs, durations, right=right).cpu().numpy().T for right in (False, True))
    return less, upto


def rank_all(tasks: Sequence[Task], criterion: Criterion, device: Device) -> list[Ranks]:
    """Ranks and quality of every task's programs, in the order of the tasks: what `quality.ranks` gives for each.

    ReplayError where `in_torch` is not.
    """
    ranks: dict[int, Ranks] = {}
    for block in blocks(tasks):
        answer = Resident.of(Padded.of([tasks[number] for number in block]), device).evaluate(
            criterion, with_ranks=True
        )
        k_lo, k_hi = (k.transpose(1, 2).cpu().numpy() for k in answer.k)
        values = (answer.size, answer.q_lo, answer.q_hi, answer.q_den)
        size, q_lo, q_hi, q_den = (value.cpu().numpy() for value in values)
        for row, number in enumerate(block):
            ranks[number] = unpadded(tasks[number], row, (k_lo, k_hi), (size, q_lo, q_hi, q_den))
    return [ranks[number] for number in range(len(tasks))]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The results of one criterion on B padded tasks; every part is a tensor that is still on the device."""

    k: tuple[Tensor, ...]  # [B, T, M] smallest and largest rank of each run; empty where not requested
    size: Tensor  # [B, M] references that rank each program
    q_lo: Tensor  # [B, M] numerators of the quality q
    q_hi: Tensor  # [B, M]
    q_den: Tensor  # [B, M]
    status: Tensor  # [B, M] 1 passed, 0 failed, -1 undecided
    passed: Tensor  # [Q, K] programs of each model that passed, problem by problem
    p_tau: Tensor  # [K] mean over the problems of the share that passed, float64


@dataclass(frozen=True, slots=True, eq=False)
class DeviceEnd:
    """One end of what is unknown, on the device, with the references sorted."""

    mine: Tensor  # [B, T, M]
    references: Tensor  # [B, T, N]
    theirs: Tensor  # [B, T, N]
    rising: Tensor  # [B, T, N]

    @classmethod
    def of(cls, ends: Ends, device: Device) -> "DeviceEnd":
        """The ends, brought to the device and sorted there."""
        mine, references, theirs = (
            torch.from_numpy(values).to(device) for values in (ends.mine, ends.references, ends.theirs)
        )
        return cls(mine, references, theirs, theirs.sort(dim=2).values)

    def counts(self, runs: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor]:
        """References smaller, and smaller or equal, than each run [B, T, M], but for those that it leaves out."""
        mine, theirs = self.mine.view(-1)[runs], self.theirs.view(-1)[excluded]
        less, upto = (
            torch.searchsorted(self.rising, self.mine, right=right, out_int32=True) for right in (False, True)
        )
        less.view(-1).index_add_(0, runs, (theirs < mine).int(), alpha=-1)
        upto.view(-1).index_add_(0, runs, (theirs <= mine).int(), alpha=-1)
        return less, upto

    def pairs(self, weights: tuple[int, int]) -> Tensor:
        """The rank of each reference against each other one, summed over the tests [B, N, N]."""
        step = max(1, PAIRS // max(self.references[0].numel() * self.references.shape[2], 1))
        parts = []
        for start in range(0, len(self.references), step):
            mine, theirs = (
                self.references[start : start + step, :, :, None],
                self.theirs[start : start + step, :, None, :],
            )
            parts.append(weights[0] * (theirs < mine).sum(dim=1) + weights[1] * (theirs <= mine).sum(dim=1))
        return torch.cat(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Resident:
    """Padded tasks on a device, to be evaluated under many criteria; the parts are those of `Padded`."""

    ends: tuple[DeviceEnd, ...]
    tests: Tensor
    size: Tensor
    column: Tensor
    group: Tensor
    reference_size: Tensor
    runs: Tensor
    excluded: Tensor
    certain: Tensor
    model: Tensor
    problem: Tensor
    programs: Tensor

    @classmethod
    def of(cls, padded: Padded, device: Device) -> "Resident":
        """The tasks, brought to the device once."""
        names = [name for name in cls.__slots__ if name != "ends"]
        parts = {name: torch.from_numpy(getattr(padded, name)).to(device) for name in names}
        return cls(ends=tuple(DeviceEnd.of(ends, device) for ends in padded.ends), **parts)

    def evaluate(self, criterion: Criterion, *, with_ranks: bool = False) -> Answer:
        """Ranks, scores, quality, verdicts and p_tau under one criterion.

        Its filters, limits and readings are those that the tasks were made with. No step goes problem by problem, and
        none waits for the device. ReplayError where `in_torch` is not.
        """
        if not in_torch(criterion):
            raise ReplayError(
                f"statistic {criterion.statistic!r} of {criterion.percentile!r} percentiles is not scored on a device;"
                " use the mean of 'mean', 'strict' or 'weak' ones"
            )
        if 2 * self.reference_size.shape[1] * self.ends[0].mine.shape[1] * criterion.threshold.numerator >= 2**63:
            raise ReplayError(f"tau {criterion.tau} has too many digits for so many references and tests; round it")
        counted = [end.counts(self.runs, self.excluded) for end in self.ends]
        q_lo, q_hi, q_den = self._quality(counted, criterion)
        status = self._status(q_lo, q_hi, q_den, criterion)
        passed = self._by_model(status == 1)
        share = passed.double() / self.programs.clamp(min=1)
        k: tuple[Tensor, ...] = ()
        if with_ranks:
            ranks = [percentile(*pair, criterion.percentile) * (self.size > 0)[:, None, :] for pair in counted]
            k = ranks[0], ranks[-1]
        p_tau = share.sum(dim=0) / (self.programs > 0).sum(dim=0)
        return Answer(k, self.size, q_lo, q_hi, q_den, status, passed, p_tau)

    def _quality(self, counted: Sequence[tuple[Tensor, Tensor]], criterion: Criterion) -> tuple[Tensor, Tensor, Tensor]:
        """Smallest and largest numerator, and denominator, of q [B, M]; 0 where no pool or no test is left."""
        if not criterion.needs_pool:
            return (torch.zeros_like(self.size),) * 3
        kind, weights = criterion.percentile, PAIRWISE[criterion.percentile]
        scores = [weights[0] * less.sum(dim=1) + weights[1] * upto.sum(dim=1) for less, upto in counted]
        known = (self.size > 0) & (self.tests > 0)[:, None]
        if criterion.reading == "score":
            return scores[0] * known, scores[-1] * known, 2 * self.size * self.tests[:, None]
        reference_scores = [self._reference_scores(end, weights) for end in self.ends]
        q_lo = self._standing(scores[0], reference_scores[-1], kind)
        q_hi = q_lo if len(reference_scores) == 1 else self._standing(scores[1], reference_scores[0], kind)
        return q_lo * known, q_hi * known, 2 * self.size * known

    def _reference_scores(self, end: DeviceEnd, weights: tuple[int, int]) -> Tensor:
        """Each reference's score [B, N, C] over 2 T own_size, among those of other groups but for one more group."""
        pairs = end.pairs(weights) * (self.group[:, :, None] != self.group[:, None, :])
        groups = self.reference_size.shape[2]
        of_group = pairs.new_zeros((*pairs.shape[:2], groups + 1))  # the last one: what is padded
        of_group.scatter_add_(2, self.group[:, None, :].expand_as(pairs), pairs)
        without = pairs.sum(dim=2)[:, :, None] - of_group[:, :, :groups]
        as_one = (weights[1] * self.tests)[:, None, None]  # no other is left: tied with itself on every test
        return torch.where(self.reference_size > 0, without, as_one)

    def _standing(self, mine: Tensor, reference_scores: Tensor, kind: str) -> Tensor:
        """The rank [B, M] of each program's score among the own scores of the references that rank it."""
        at = self.column[:, None, :].expand(-1, reference_scores.shape[1], -1)
        real = (self.group < self.reference_size.shape[2])[:, :, None]
        among = (self.group[:, :, None] != self.column[:, None, :]) & real
        theirs = reference_scores.gather(2, at) * self.size[:, None, :]  # both scores times 2 T and both sizes
        programs = mine[:, None, :] * self.reference_size.clamp(min=1).gather(2, at)
        return percentile(((theirs < programs) & among).sum(dim=1), ((theirs <= programs) & among).sum(dim=1), kind)

    def _status(self, q_lo: Tensor, q_hi: Tensor, q_den: Tensor, criterion: Criterion) -> Tensor:
        """The verdict [B, M]: q against the whole part of tau/100 of its denominator, and the other gates."""
        if not criterion.needs_pool or criterion.threshold == 1:
            return self.certain
        top, bottom = criterion.threshold.as_integer_ratio()
        most = q_den * top // bottom  # fits 64 bits: see `evaluate`
        g = torch.where(q_hi <= most, 1, torch.where(q_lo > most, 0, -1)).to(torch.int8)
        g = torch.where((q_den > 0) & (self.size >= criterion.min_references), g, -1)
        return torch.where((self.certain == 0) | (g == 0), 0, torch.minimum(self.certain, g))

    def _by_model(self, chosen: Tensor) -> Tensor:
        """How many programs of each model are chosen on each problem [Q, K]."""
        problems, kinds = self.programs.shape
        sums = chosen.new_zeros((len(chosen), kinds + 1), dtype=torch.int64)  # the last one: who is not counted
        sums.scatter_add_(1, self.model, chosen.long())
        return sums.new_zeros((problems, kinds)).index_add_(0, self.problem, sums[:, :kinds])


def percentile(less: Tensor, upto: Tensor, kind: str) -> Tensor:
    """Integer percentile rank over 2n, int64, from the numbers of smaller and of smaller or equal references."""
    if kind == "strict":
        return 2 * less.long()
    if kind == "weak":
        return 2 * upto.long()
    ranks = less.long() + upto
    return ranks + (less < upto) if kind == "rank" else ranks
