"""Many problems judged together on a device: the same verdicts as `gates.judge` gives of each, to the last bit.

Readings, filters and limits come from numpy, problem by problem, as everywhere; ranks are counted on the device, and
scores too where `in_torch` says so, else by numpy from the device's counts. Imported only where a device is chosen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.device import Device, Resident, counts, find_device, in_torch, knows, rank_all
from lapledger.replay.devices.tasks import Padded, Task
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.context import JudgingContext, evaluate, patterns
from lapledger.replay.judging.gates import Verdicts, decide, judge
from lapledger.replay.judging.graded_runs import Rules, TestResults, grade_runs, make_rules, reference_pool
from lapledger.replay.judging.quality import Pooled, Ranks, pooled
from lapledger.replay.judging.ranks import Order, Pool
from lapledger.replay.measurements import Bools, Ints, ProblemMeasurements, read


def judge_on(problems: Sequence[ProblemMeasurements], criterion: Criterion, device: str) -> list[Verdicts]:
    """Verdicts on every program of every problem, in their order, ranked on the device `cpu` or `cuda`.

    ReplayError where there is no such device.
    """
    where = find_device(device)
    if not knows(criterion):
        return [judge(m, criterion, hold=False) for m in problems]
    cases = [_Case.of(m, criterion) for m in problems]
    if not in_torch(criterion):
        return [case.decide(case.scored_on_host(where)) for case in cases]
    contexts = [case.context() for case in cases]
    tasks = [task for case, context in zip(cases, contexts, strict=True) for task in case.tasks(context)]
    device_ranks = iter(rank_all(tasks, criterion, where))
    return [case.decide(context, device_ranks) for case, context in zip(cases, contexts, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceCampaign:
    """Measurements on a device, for criteria that differ in tau, quality metric, percentile and smallest pool alone."""

    resident: Resident
    models: tuple[str, ...]  # in alphabetical order: the columns of an answer's `passed` and `p_tau`


def hold(problems: Sequence[ProblemMeasurements], criterion: Criterion, device: str) -> DeviceCampaign:
    """The candidates' and the references' runs as the criterion reads them, brought to a device.

    A problem that left the environment is not counted. ReplayError where there is no such device, or where the
    criterion is not scored on one.
    """
    if not (criterion.needs_pool and in_torch(criterion)):
        raise ReplayError("a device holds questions about the mean of 'mean', 'strict' or 'weak' percentiles alone")
    where, gates = find_device(device), replace(criterion, tau="100")
    models = sorted({model for m in problems for model in np.array(m.models)[m.candidate].tolist()})
    tasks = []
    for number, m in enumerate(problems):
        case = _Case.of(m, criterion)
        certain = judge(m, gates).status  # where tau is 100 the gate on q is open: what is left is all the others
        counted = m.candidate & (not case.rules.excluded)
        model = np.where(counted, np.searchsorted(models, m.models), -1)
        for task, (_, rows) in zip(case.tasks(case.context()), patterns(case.results.lacking), strict=True):
            tasks.append(replace(task, certain=certain[rows], model=model[rows], problem=number))
    return DeviceCampaign(Resident.of(Padded.of(tasks), where), tuple(models))


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One problem, read and graded, and not yet ranked."""

    m: ProblemMeasurements
    rules: Rules
    results: TestResults

    @classmethod
    def of(cls, m: ProblemMeasurements, criterion: Criterion) -> "_Case":
        readings = read(m, criterion)
        rules = make_rules(m, readings, criterion)
        return cls(m, rules, grade_runs(rules, readings, m.duplicate))

    def context(self) -> JudgingContext:
        """Every pool that programs are ranked among, without its own scores: the device makes them."""
        pool = reference_pool(self.results, self.m)
        nobody, criterion = np.zeros(0, dtype=np.int64), self.rules.criterion
        kinds = [lacks for lacks, _ in patterns(self.results.lacking)]
        return JudgingContext(
            self.rules,
            {lacks.tobytes(): pooled(pool.on(~lacks), nobody, criterion, with_scores=False) for lacks in kinds},
        )

    def tasks(self, context: JudgingContext) -> Iterator[Task]:
        """The programs beside each pool, in the order in which they are evaluated."""
        for lacks, rows in patterns(self.results.lacking):
            cells = np.ix_(rows, ~lacks)
            pool = context.pools[lacks.tobytes()].pool
            yield Task(pool, self.results.lo[cells], self.results.hi[cells], self.m.duplicate[rows])

    def scored_on_host(self, device: Device) -> JudgingContext:
        """The same pools, with reference scores where the criterion needs them, whose ranks a device counts."""
        known = reference_pool(self.results, self.m)
        pool = _DevicePool(known.lo, known.hi, known.duplicate, device)
        with_scores = self.rules.criterion.reading == "leaderboard"
        pools = {}
        for lacks, rows in patterns(self.results.lacking):
            columns = pool.column(self.m.duplicate[rows])
            pools[lacks.tobytes()] = pooled(pool.on(~lacks), columns, self.rules.criterion, with_scores=with_scores)
        return JudgingContext(self.rules, pools)

    def decide(self, context: JudgingContext, device_ranks: Iterator[Ranks] | None = None) -> Verdicts:
        """The verdicts, from a device's ranks in the order of `tasks`, or without those from the context's own."""
        m = self.m
        if device_ranks is None:
            return decide(m, self.rules.criterion, evaluate(context, self.results, m.duplicate, interface=m.interface))

        def rank(among: Pooled, lo: Ints, hi: Ints, column: Ints) -> Ranks:
            return next(device_ranks)

        return decide(
            m, self.rules.criterion, evaluate(context, self.results, m.duplicate, interface=m.interface, rank=rank)
        )


@dataclass(frozen=True, slots=True, eq=False)
class _DeviceOrder(Order):
    """An order that is counted on a device."""

    device: Device

    def counts(self, mine: Ints) -> tuple[Ints, Ints]:
        return counts(self.rising, mine, self.device)


@dataclass(frozen=True, eq=False)
class _DevicePool(Pool):
    """A pool whose orders are counted on a device."""

    device: Device

    @cached_property
    def orders(self) -> tuple[Order, Order]:
        low, high = super().orders
        counted = _DeviceOrder(low.values, low.rising, low.position, self.device)
        if high is low:
            return counted, counted
        return counted, _DeviceOrder(high.values, high.rising, high.position, self.device)

    def on(self, tests: Bools) -> Pool:
        return _DevicePool(self.lo[:, tests], self.hi[:, tests], self.duplicate, self.device)
