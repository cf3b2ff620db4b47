"""A worker of the pool: runs the open works of its lanes, whichever campaign they belong to, one campaign at a time.

It reads works from the ledger at a cut; the stream only wakes it. Two workers that run the same work make a surplus.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any

from lapledger.consumers.services.service_loop import NamedLease, Pace
from lapledger.ledger.events import LANES, REQUESTS, CampaignOpened, ExecutionRequested
from lapledger.ledger.questions.queries import ATTEMPTS, Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.sql import leases
from lapledger.ledger.streams.base import Partition
from lapledger.ledger.streams.producer import partition_of
from lapledger.producers.campaigns.attempts import WorkerFacts
from lapledger.producers.campaigns.worker import Worker
from lapledger.workflows.execution.plan_campaign import members_of
from lapledger.workflows.execution.run_campaign import RUN_LEASE, closing_of
from lapledger.workflows.execution.worker_setup import (
    Site,
    class_here,
    class_of,
    material_of,
    start_worker,
    worker_context,
)
from lapledger.workflows.service_runtime import Service

PROGRESS_SECONDS = 15
"""How often a busy worker logs its progress and looks at what others did."""

MOST_WORKS = 20_000
"""Most works taken from the ledger at once."""

_OPEN = """
SELECT campaign_id, works FROM campaign_opened c
WHERE NOT EXISTS (SELECT 1 FROM closing d WHERE d.campaign_id = c.campaign_id)
QUALIFY row_number() OVER (PARTITION BY campaign_id ORDER BY _admission, _row) = 1 ORDER BY _admission, _row
"""
_WORKS = """
SELECT * EXCLUDE (attempt_id, outcome, detail) FROM work
WHERE campaign_id = $campaign AND outcome IS NULL AND list_contains($lanes, lane) ORDER BY position LIMIT $most
"""


class PoolFollower:
    """One worker process. What it has done it does not do again, however late the ledger learns of it."""

    def __init__(self, service: Service, site: Site, service_class: str) -> None:
        self._service, self._site, self._class = service, site, service_class
        self._log = service.context.log
        self._pace = Pace(service.context.monotonic, rest=10)  # a look disturbs the timings of this machine
        self._begun: dict[str, tuple[CampaignOpened, WorkerFacts]] = {}
        self._workers: dict[str, Worker] = {}
        self._refused: set[str] = set()
        self._closer = Closer(service)
        self._current: str | None = None
        self._lanes: frozenset[int] = frozenset()
        self._cut: Cut | None = None
        self._again = self._held_back = False
        self._last_report = self._looked = service.context.monotonic()

    def step(self, assigned: frozenset[Partition]) -> bool:
        """Takes works when there may be new ones; running them goes on meanwhile."""
        lanes = frozenset(partition for stream, partition in assigned if stream == REQUESTS)
        self._tend()
        cut = self._service.ledger.cut()
        if lanes != self._lanes or self._due(cut):
            self._looked = self._service.context.monotonic()
            self._lanes = lanes
            with self._pace.look(), closing(Questions(self._service.ledger, cut)) as questions:
                works = {row["campaign_id"]: row["works"] for row in questions.rows(_OPEN)}
                self._take(questions, list(works))
                self._closer.close(questions, works)
                self._forget(works)
            self._cut, self._again = cut, False
        return False

    def finish(self) -> bool:
        """Takes no more; True when the programs that ran have ended and their outcomes are on the stream."""
        if self._current is None:
            return True
        campaign, worker = self._current, self._workers[self._current]
        worker.stop()
        if not worker.wait(0.0):
            return False
        self._current = None
        self._ended(campaign, worker)
        return True

    def _tend(self) -> None:
        """Notices that the works of the campaign have run out, and tells how far they are now and then."""
        if self._current is None:
            return
        campaign, worker = self._current, self._workers[self._current]
        if worker.wait(0.0):
            self._current, self._again = None, True
            self._ended(campaign, worker)
        elif self._service.context.monotonic() - self._last_report > PROGRESS_SECONDS:
            self._log_progress("running", campaign, worker)

    def _ended(self, campaign: str, worker: Worker) -> None:
        """Raises why it failed, if it did: after an outage its works are taken again, by a worker recreated."""
        self._log_progress("works done", campaign, worker)
        if worker.failure is not None:
            self._workers.pop(campaign, None)
            raise worker.failure

    def _log_progress(self, event: str, campaign: str, worker: Worker) -> None:
        self._last_report = self._service.context.monotonic()
        producer = self._service.producer
        outcomes = dict(worker.progress.outcomes)
        self._log(event, campaign=campaign, outcomes=outcomes, epoch=producer.epoch, frames=producer.frames)

    def _due(self, cut: Cut) -> bool:
        """Whether there may be something to do; a busy worker looks at others' outcomes only now and then."""
        if self._cut is None or self._again or _requested(cut) != _requested(self._cut):
            return True
        busy = self._current is not None and self._service.context.monotonic() - self._looked < PROGRESS_SECONDS
        return (cut != self._cut or self._held_back) and not busy and self._pace.due()

    def _take(self, questions: Questions, campaigns: Sequence[str]) -> None:
        """Gives the slots the works of the first campaign that has any for this worker."""
        self._held_back = False
        if self._current is not None:
            works = self._waiting(questions, self._current) if self._current in campaigns else []
            worker = self._workers[self._current]
            if worker.offer(works):
                worker.start()  # slots that had run out of works
            return
        for campaign in campaigns:
            works = [] if campaign in self._refused else self._waiting(questions, campaign)
            if not works or not self._accepts(questions, campaign):
                continue
            hired = self._worker(questions, campaign)
            if hired is None:
                return  # its class is not decided yet, and its works come first
            if count := hired.offer(works):
                self._current = campaign
                self._log("works taken", campaign=campaign, count=count, lanes=sorted(self._lanes))
                hired.start()
                return

    def _waiting(self, questions: Questions, campaign: str) -> list[ExecutionRequested]:
        """The open works of this worker's lanes, in the order of their position; none while a `lap run` does them."""
        lanes = [str(lane) for lane in range(LANES) if partition_of(REQUESTS, str(lane)) in self._lanes]
        rows = questions.rows(_WORKS, campaign=campaign, lanes=lanes, most=MOST_WORKS)
        if rows and is_run_elsewhere(self._service, campaign):
            self._held_back = True
            return []
        return [ExecutionRequested(**row) for row in rows]

    def _forget(self, campaigns: Collection[str]) -> None:
        """Lets go of what was kept for campaigns that are closed."""
        for campaign in set(self._workers) - set(campaigns) - {self._current}:
            del self._workers[campaign]

    def _accepts(self, questions: Questions, campaign: str) -> bool:
        """Whether its programs may be timed here; said once when not."""
        if campaign in self._workers:
            return True
        opening = self._opening_of(questions, campaign)
        begun = class_of(questions, campaign)
        differs = class_here(self._site.sandbox).differs(begun) if begun else ""
        if opening.service != self._class:
            differs = f"service ({opening.service})"
        if differs:
            self._refused.add(campaign)
            self._log("campaign refused", level="warning", campaign=campaign, reason=f"it runs on another {differs}")
        return not differs

    def _worker(self, questions: Questions, campaign: str) -> Worker | None:
        """Who runs a campaign here; None until the ledger holds that somebody of this class has begun it."""
        if campaign in self._workers:
            return self._workers[campaign]
        opening = self._opening_of(questions, campaign)
        if campaign not in self._begun:
            producer = self._service.producer
            facts, started = start_worker(opening, self._site.sandbox, worker_id=producer.epoch, slots=self._site.slots)
            producer.append([started])
            self._begun[campaign] = opening, facts
            self._log("campaign begun", campaign=campaign, epoch=producer.epoch, frames=producer.frames)
        if class_of(questions, campaign) is None:
            return None
        chosen = members_of(questions, opening)
        context = worker_context(
            opening,
            self._begun[campaign][1],
            self._site,
            blobs=self._service.ledger.blobs,
            material=material_of(chosen.programs, chosen.tests, chosen.flags),
        )
        self._workers[campaign] = Worker(context, self._service.producer, ready=self._service.spooled.ready)
        return self._workers[campaign]

    def _opening_of(self, questions: Questions, campaign: str) -> CampaignOpened:
        if campaign in self._begun:
            return self._begun[campaign][0]
        return CampaignOpened(**questions.rows("SELECT * FROM campaign WHERE campaign_id = $id", id=campaign)[0])


class Closer:
    """Tells that a campaign is complete: one of the workers does, under a lease that it keeps as long as it lives."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._leases: dict[str, NamedLease] = {}
        self._closed: set[str] = set()

    def close(self, questions: Questions, works: Mapping[str, int]) -> None:
        """Closes every campaign of so many works that has an outcome of each, but for those of a `lap run`."""
        for campaign in sorted(set(works)):
            if campaign in self._closed:  # until the ledger says so, nobody else is to close it
                self._leases[campaign].hold()
                continue
            counts = questions.rows(ATTEMPTS, campaign=campaign)[0]
            if counts["accepted"] < works[campaign] or is_run_elsewhere(self._service, campaign):
                continue
            lease = self._leases.setdefault(
                campaign, NamedLease(self._service.ledger, f"close:{campaign}", self._service.context)
            )
            if lease.hold():
                self._close(campaign, counts, lease)
                self._closed.add(campaign)
        for campaign in set(self._leases) - set(works):  # it is closed at the ledger's cut
            self._leases.pop(campaign).drop()

    def _close(self, campaign: str, counts: dict[str, Any], lease: NamedLease) -> None:
        with closing(Questions(self._service.ledger)) as questions:
            closed = questions.rows("SELECT 1 FROM closing WHERE campaign_id = $id", id=campaign)
        if not closed:
            producer = self._service.producer
            producer.append([closing_of(campaign, counts)])
            figures = {name: counts[name] for name in ("accepted", "surplus", "faults")}
            logger = self._service.context.log
            logger("campaign closed", campaign=campaign, **figures, epoch=producer.epoch, lease_epoch=lease.epoch)


def is_run_elsewhere(service: Service, campaign: str) -> bool:
    """Whether a `lap run` works on it. To be asked after its works were read: it takes its lease before it requests."""
    return bool(leases.live(service.ledger.engine, {f"{RUN_LEASE}{campaign}"}, service.context.now_ms()))


def _requested(cut: Cut) -> tuple[object, ...]:
    return tuple(counts for name, counts in cut.counts if name != "facts")
