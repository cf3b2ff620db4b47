"""The derivers as services: the stream wakes them, and they derive from the ledger at a cut of their own.

Nothing is computed from the stream. What is missing is waited for, visibly; deriving twice is harmless.
"""

from dataclasses import dataclass

from lapledger.consumers.derive.calibrator import CalibrationOrder, calibrate
from lapledger.consumers.derive.rewarder import Assigned, assign
from lapledger.consumers.services.service_loop import NamedLease, Pace, ServiceContext
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import CONTROL, FACTS
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.base import Partition
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError


@dataclass(frozen=True, slots=True)
class RewardOrder:
    """Which rewards to assign: under which criterion, of which campaign, with the calibration of which source."""

    criterion: Criterion
    name: str
    campaign: str | None = None
    source: str | None = None


class _Waiting:
    """Tells what is waited for, once for each reason."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._reason = ""

    def log(self, reason: str, *, cut: str) -> None:
        """A reason that differs from the last one is reported."""
        if reason != self._reason:
            self._context.log("waiting", reason=reason, cut=cut)
        self._reason = reason


class RewardFollower:
    """Assigns the rewards of the problems whose partition of `facts` it was assigned."""

    def __init__(self, ledger: Ledger, producer: Producer, order: RewardOrder, context: ServiceContext) -> None:
        self._ledger, self._producer, self._order, self._context = ledger, producer, order, context
        self._pace = Pace(context.monotonic)
        self._waiting = _Waiting(context)
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._already_appended: set[str] = set()
        self._warned: tuple[str, ...] = ()

    def step(self, assigned: frozenset[Partition]) -> bool:
        """One pass, when the ledger admitted something that could change its rewards."""
        mine = frozenset(partition for stream, partition in assigned if stream == FACTS)
        now = _admitted(self._ledger.cut(), mine)
        if mine and now != self._seen and self._pace.due():
            with self._pace.look():
                self._assign(mine)
            self._seen = now
        return False

    def finish(self) -> bool:
        """Nothing is held."""
        return True

    def _assign(self, mine: frozenset[int]) -> None:
        order = self._order
        try:
            done = assign(
                self._ledger,
                self._producer,
                order.criterion,
                name=order.name,
                campaign=order.campaign,
                source=order.source,
                partitions=mine,
                already_appended=self._already_appended,
            )
        except ReplayError:  # the criterion is refused, whatever comes
            raise
        except UserError as error:  # what is asked for is not there yet
            self._waiting.log(str(error), cut=str(self._ledger.cut()))
            return
        self._already_appended |= {reward.reward_id for reward in done.new}
        self._log(done)
        reason = f"{done.waiting} candidates are open or undecided" if done.waiting else "new facts"
        self._waiting.log(reason, cut=done.cut)

    def _log(self, done: Assigned) -> None:
        """What was assigned, and what is new to be wary of in it."""
        criterion = self._order.criterion.hash
        for warning in done.warnings if done.warnings != self._warned else ():
            self._context.log("be wary", level="warning", warning=warning, criterion=criterion, cut=done.cut)
        self._warned = done.warnings
        if not done.new:
            return
        self._context.log(
            "rewards assigned",
            count=len(done.new),
            problems=sorted({reward.problem_id for reward in done.new}),
            criterion=criterion,
            epoch=self._producer.epoch,
            frames=self._producer.frames,
            cut=done.cut,
        )


class CalibrationFollower:
    """Fits one campaign into another, and again when the evidence changes.

    It tries while it was assigned the one partition of `control`, and may while it holds the lease of the target.
    """

    def __init__(self, ledger: Ledger, producer: Producer, order: CalibrationOrder, context: ServiceContext) -> None:
        self._ledger, self._producer, self._order, self._context = ledger, producer, order, context
        self._lease = NamedLease(ledger, f"calibrate:{order.target}", context)
        self._pace = Pace(context.monotonic)
        self._waiting = _Waiting(context)
        self._seen: Cut | None = None
        self._already_appended: set[str] = set()

    def step(self, assigned: frozenset[Partition]) -> bool:
        """One fit, when the ledger admitted something since the last one; nothing for who was assigned nothing."""
        if not any(stream == CONTROL for stream, _ in assigned):
            self._lease.drop()
            return False
        now = self._ledger.cut()
        if self._lease.hold() and now != self._seen and self._pace.due():
            with self._pace.look():
                self._fit()
            self._seen = now
        return False

    def finish(self) -> bool:
        """Gives the lease back."""
        self._lease.drop()
        return True

    def _fit(self) -> None:
        try:
            fitted = calibrate(self._ledger, self._producer, self._order, already_appended=self._already_appended).kept
        except ReplayError:
            raise
        except UserError as error:  # a campaign is not there yet, or not complete
            self._waiting.log(str(error), cut=str(self._ledger.cut()))
            return
        self._waiting.log("new facts", cut=fitted.cut)
        if fitted.calibration_id not in self._already_appended:
            self._already_appended.add(fitted.calibration_id)
            self._context.log(
                "calibration fitted",
                calibration=fitted.calibration_id,
                kind=fitted.kind,
                pairs=fitted.pairs,
                problems=fitted.problems,
                refused=fitted.refused,
                epoch=self._producer.epoch,
                lease_epoch=self._lease.epoch,
                cut=fitted.cut,
            )


def _admitted(cut: Cut, partitions: frozenset[int]) -> tuple[tuple[str, int, int], ...]:
    """How much was admitted of what the problems of these partitions rest on."""
    pairs = [*((FACTS, partition) for partition in sorted(partitions)), (CONTROL, 0)]
    return tuple((*pair, cut.at(*pair)) for pair in pairs)
