"""What services share: the loop, named leases, seats; and each follower in steps, with a clock that the test moves."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.services.derive import CalibrationFollower, CalibrationOrder, RewardFollower, RewardOrder
from lapledger.consumers.services.partition_assignment import SeatedGroup
from lapledger.consumers.services.seal import TOGETHER, SealFollower, SealWhen
from lapledger.consumers.services.service_loop import Alone, NamedLease, Pace, SinkWatch, follow
from lapledger.ledger.errors import Fault, SpoolFull, Unavailable
from lapledger.ledger.events import CONTROL, FACTS, Event
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.base import Partition, Stream
from lapledger.ledger.streams.producer import Producer, partition_of
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import judge_campaign, rewards
from tests.consumers.edges import Desk
from tests.consumers.histories import Campaign, Cell, all_facts, attempts, corpus_facts, opening, requests

CRITERION = Criterion(tau="50")
MINE = frozenset({(CONTROL, 0)})
"""What the group assigns to the calibrator that is to try."""
ALL = frozenset((FACTS, partition) for partition in range(4))


@pytest.fixture
def desk() -> Desk:
    """The clock and the log of the test."""
    return Desk()


@pytest.fixture
def stream(both: Ledger) -> Iterator[Stream]:
    """The stream of the ledger."""
    with closing(both.stream()) as session:
        yield session


class Members:
    """A group that assigns what the test says, and remembers what was asked of it."""

    def __init__(self, *shares: frozenset[Partition]) -> None:
        self.shares = list(shares)
        self.wanted = 0
        self.left = False

    def assigned(self, wait_seconds: float) -> frozenset[Partition]:
        """The next share; the last one for ever."""
        self.wanted += 1
        return self.shares.pop(0) if len(self.shares) > 1 else self.shares[0]

    def leave(self) -> None:
        """Remembered."""
        self.left = True


class Steps:
    """A follower that counts down its steps and its finish, then fails if it was told to."""

    def __init__(self, stop: threading.Event, steps: int, *, finish: int = 1, failure: Exception | None = None) -> None:
        self.stop, self.steps, self.finishing, self.failure = stop, steps, finish, failure
        self.seen: list[frozenset[Partition]] = []

    def step(self, assigned: frozenset[Partition]) -> bool:
        """The last step sets the stop, or fails."""
        self.seen.append(assigned)
        if len(self.seen) == self.steps:
            if self.failure:
                raise self.failure
            self.stop.set()
        return True

    def finish(self) -> bool:
        """True at the last of its calls."""
        self.finishing -= 1
        return self.finishing == 0


def test_a_service_steps_until_it_is_stopped_then_finishes_and_leaves(desk: Desk) -> None:
    """Every step sees what is assigned then; while it finishes it stays a member; then it leaves."""
    stop, item, two = threading.Event(), frozenset({(FACTS, 0)}), frozenset({(FACTS, 0), (FACTS, 1)})
    group, follower = Members(item, two), Steps(stop, 3, finish=4)
    follow(group, follower, stop, desk.context("a").log)
    assert follower.seen == [item, two, two]
    assert (follower.finishing, group.wanted, group.left) == (0, 3 + 3, True)
    assert [line["partitions"] for line in desk.logged("assigned")] == [["facts/0"], ["facts/0", "facts/1"]]


def test_a_service_that_fails_leaves_its_group(desk: Desk) -> None:
    """Its partitions are not waited for: the failure goes on to the edge after it has left."""
    stop, group = threading.Event(), Members(frozenset())
    with pytest.raises(Fault, match="broken"):
        follow(group, Steps(stop, 1, failure=Fault("broken")), stop, desk.context("a").log)
    assert group.left


def test_a_server_that_does_not_answer_is_waited_for(desk: Desk) -> None:
    """The step is done again until it succeeds; that the server went and came is told once."""
    stop = threading.Event()
    failing = iter([Unavailable("away"), Unavailable("still away")])

    class Patient(Steps):
        def step(self, assigned: frozenset[Partition]) -> bool:
            """Fails twice, then does what it should."""
            for failure in failing:
                raise failure
            return super().step(assigned)

    follower = Patient(stop, 2)
    follow(Members(frozenset()), follower, stop, desk.context("a").log)
    assert len(follower.seen) == 2
    assert [line["event"] for line in desk.lines] == ["assigned", "server away", "server back", "stopping"]


def test_a_service_whose_group_is_away_is_requested_all_the_same(desk: Desk) -> None:
    """Its work may have failed meanwhile, as that of a worker with a full spool does: nobody waits for ever."""

    class Away(Members):
        def assigned(self, wait_seconds: float) -> frozenset[Partition]:
            """What it assigned once, then no answer."""
            if self.wanted:
                raise Unavailable("away")
            return super().assigned(wait_seconds)

    stop, item = threading.Event(), frozenset({(FACTS, 0)})
    group, follower = Away(item), Steps(stop, 3, failure=SpoolFull("full"))
    with pytest.raises(SpoolFull, match="full"):
        follow(group, follower, stop, desk.context("a").log)
    assert follower.seen == [item] * 3
    assert group.left
    assert len(desk.logged("server away")) == 1


def test_a_named_lease_is_held_by_one_and_passes_on_when_it_ends(both: Ledger, desk: Desk) -> None:
    """The second waits; it takes over when the first has not prolonged in time, and the first notices that it lost."""
    first, second = (NamedLease(both, "seal", desk.context(name)) for name in ("a", "b"))
    assert (first.hold(), second.hold()) == (True, False)
    for _ in range(5):  # prolonged every 10 s, a lease of 30 s never ends
        desk.seconds += 10
        assert (first.hold(), second.hold()) == (True, False)
    desk.seconds += 31
    assert (second.hold(), first.hold()) == (True, False)
    assert (first.epoch, second.epoch) == (None, 2)
    assert [line["level"] for line in desk.logged("lease lost", "a")] == ["warning"]
    second.drop()
    assert first.hold()


def test_members_of_a_local_group_divide_the_partitions(both: Ledger, stream: Stream, desk: Desk) -> None:
    """One has all, two have halves, and one that leaves, or is not heard of for the lease's time, leaves its share."""
    everything = frozenset((FACTS, partition) for partition in range(4))

    def member(name: str) -> SeatedGroup:
        return SeatedGroup(stream.join("group", (FACTS,), name), both, "group", desk.context(name))

    first, second = member("a"), member("b")
    assert first.assigned(0.0) == everything
    halves = second.assigned(0.0), first.assigned(0.0)
    assert halves[0] | halves[1] == everything
    assert not halves[0] & halves[1]
    assert [len(half) for half in halves] == [2, 2]
    third = member("c")
    shares = [group.assigned(0.0) for group in (third, first, second)]
    assert sorted(len(share) for share in shares) == [1, 1, 2]
    assert frozenset().union(*shares) == everything
    second.leave()
    shares = [group.assigned(0.0) for group in (third, first)]
    assert frozenset().union(*shares) == everything
    desk.seconds += 31  # the first is not heard of any more
    assert third.assigned(0.0) == everything


def test_dear_looks_are_rare(desk: Desk) -> None:
    """After a look of 2 s with a rest of four times, the next is due 8 s later, and never later than 15 s."""
    pace = Pace(lambda: desk.seconds, rest=4)
    assert pace.due()
    with pace.look():
        desk.seconds += 2
    desk.seconds += 7.9
    assert not pace.due()
    desk.seconds += 0.1
    assert pace.due()
    with pace.look():
        desk.seconds += 60
    desk.seconds += 15
    assert pace.due()


CAMPAIGN = Campaign(
    "main",
    {
        problem: {
            "r1": (Cell(), Cell(ms=(10.0,)), Cell(ms=(10.0,))),
            "r2": (Cell(), Cell(ms=(20.0,)), Cell(ms=(20.0,))),
            "r3": (Cell(), Cell(ms=(30.0,)), Cell(ms=(30.0,))),
            "x": (Cell(), Cell(ms=(25.0,)), Cell(ms=(25.0,))),
        }
        for problem in ("alpha", "beta", "gamma", "delta")
    },
)
REWARDS = 16


def append(stream: Stream, epoch: str, facts: list[Event]) -> None:
    """What another process appends."""
    Producer(stream, epoch, "test", "0").append(facts)


def rewarder(ledger: Ledger, stream: Stream, desk: Desk, name: str) -> RewardFollower:
    """A rewarder of a process of its own."""
    producer = Producer(stream, f"epoch-{name}", "test", "0")
    return RewardFollower(ledger, producer, RewardOrder(CRITERION, "p_50"), desk.context(name))


def stored(ledger: Ledger) -> list[dict[str, object]]:
    """How often each reward was told."""
    with closing(Questions(ledger)) as questions:
        return questions.rows(
            "SELECT reward_id, count(*) AS told FROM reward_assigned GROUP BY reward_id ORDER BY reward_id"
        )


def test_rewarders_each_do_the_problems_of_their_partitions(both: Ledger, stream: Stream, desk: Desk) -> None:
    """Together they assign what one replay derives, each reward once, whatever the problems are."""
    append(stream, "facts", all_facts(CAMPAIGN))
    drain(both, stream)
    for name, share in (("a", {0, 1}), ("b", {2, 3})):
        rewarder(both, stream, desk, name).step(frozenset((FACTS, partition) for partition in share))
    drain(both, stream)
    with closing(Questions(both)) as questions:
        derived, _ = rewards(judge_campaign(questions, "main", CRITERION))
    assert stored(both) == [{"reward_id": r.reward_id, "told": 1} for r in sorted(derived, key=lambda r: r.reward_id)]
    assert len(derived) == REWARDS
    logged = {line["holder"]: line["problems"] for line in desk.logged("rewards assigned")}
    assert {partition_of(FACTS, problem) for problem in logged["a"]} <= {0, 1}
    assert {partition_of(FACTS, problem) for problem in logged["b"]} <= {2, 3}


def test_a_rewarder_waits_visibly_and_goes_on_when_facts_come(both: Ledger, stream: Stream, desk: Desk) -> None:
    """No campaign, then open problems, then closed ones; nothing is told twice, though no sink admits its rewards."""
    follower = rewarder(both, stream, desk, "a")
    follower.step(ALL)
    follower.step(ALL)
    assert ["no campaign" in line["reason"] for line in desk.logged("waiting")] == [True]
    append(stream, "corpus", [*corpus_facts(CAMPAIGN), opening(CAMPAIGN), *requests(CAMPAIGN)])
    drain(both, stream)
    follower.step(ALL)
    assert desk.logged("waiting")[-1]["reason"] == "16 candidates are open or undecided"
    append(stream, "runs", [event for events in attempts(CAMPAIGN) for event in events])
    drain(both, stream)
    follower.step(ALL)
    assert [line["count"] for line in desk.logged("rewards assigned")] == [REWARDS]
    drain(both, stream, leases={(CONTROL, 0): 0})  # so it derives again, from a cut without its own rewards
    follower.step(ALL)
    drain(both, stream)
    follower.step(ALL)
    assert len(desk.logged("rewards assigned")) == 1
    assert [row["told"] for row in stored(both)] == [1] * REWARDS


def test_a_rewarder_reports_once_that_a_limit_was_never_run(both: Ledger, stream: Stream, desk: Desk) -> None:
    """One program was killed at 2 s and 20 s are asked for: a line in the log, and none again while nothing changes."""
    killed = {"x": (Cell(), Cell("time_limit", (2000.0,)), Cell(ms=(25.0,)))}
    cells = {
        problem: {**matching, **(killed if problem == "alpha" else {})} for problem, matching in CAMPAIGN.cells.items()
    }
    append(stream, "facts", all_facts(replace(CAMPAIGN, cells=cells)))
    drain(both, stream)
    producer = Producer(stream, "epoch-a", "test", "0")
    order = RewardOrder(replace(CRITERION, tau="100", timeout_ms=20_000), "late")
    follower = RewardFollower(both, producer, order, desk.context("a"))
    follower.step(ALL)
    drain(both, stream)
    append(stream, "more", [event for events in attempts(CAMPAIGN) for event in events])
    drain(both, stream)
    follower.step(ALL)
    (line,) = desk.logged("be wary")
    assert (line["level"], line["warning"]) == (
        "warning",
        "the criterion's limit exceeds the executed limit (2000 ms): 1 run of 1 undecided candidate was killed below"
        " it, and only running them again with the longer limit can decide them",
    )


def test_a_rewarder_looks_only_when_something_changed_for_it(both: Ledger, stream: Stream, desk: Desk) -> None:
    """Facts of a partition of others do not wake it; without a partition it does nothing at all."""
    append(stream, "facts", all_facts(CAMPAIGN))
    drain(both, stream)
    follower = rewarder(both, stream, desk, "a")
    follower.step(frozenset())
    assert desk.lines == []
    mine = partition_of(FACTS, "alpha")
    follower.step(frozenset({(FACTS, mine)}))
    before = len(desk.lines)
    strangers = next(p for p in ("beta", "gamma", "delta") if partition_of(FACTS, p) != mine)
    late = replace(CAMPAIGN, cells={strangers: CAMPAIGN.cells[strangers]}, name="main")
    append(stream, "late", [event for events in attempts(late) for event in events])
    follower.step(frozenset({(FACTS, mine)}))
    assert len(desk.lines) == before


def test_one_calibrator_fits_and_fits_again_on_new_evidence(both: Ledger, stream: Stream, desk: Desk) -> None:
    """It waits for both campaigns; the second one waits for the lease; a refit is told once, under another id."""
    old = replace(CAMPAIGN, name="old")
    order = CalibrationOrder(CRITERION, "old", "main")
    first, second = (
        CalibrationFollower(both, Producer(stream, f"epoch-{name}", "test", "0"), order, desk.context(name))
        for name in ("a", "b")
    )
    first.step(MINE)
    second.step(MINE)
    assert {line["holder"] for line in desk.logged("waiting")} == {"a"}
    append(stream, "old", all_facts(old))
    append(stream, "opened", [opening(CAMPAIGN), *requests(CAMPAIGN)])
    drain(both, stream)
    first.step(MINE)
    assert "works without an outcome" in desk.logged("waiting")[-1]["reason"]
    append(stream, "runs", [event for events in attempts(CAMPAIGN) for event in events])
    drain(both, stream)
    for _ in range(3):
        first.step(MINE)
        second.step(MINE)
    assert [line["holder"] for line in desk.logged("calibration fitted")] == ["a"]
    drain(both, stream)
    first.step(MINE)
    assert len(desk.logged("calibration fitted")) == 1
    first.step(frozenset())  # its partition went to the other one
    desk.seconds += 1
    second.step(MINE)
    drain(both, stream)
    with closing(Questions(both)) as questions:
        (row,) = questions.rows("SELECT count(*) AS told FROM calibration_fitted")
    assert row["told"] == 1  # the second found it held


def test_the_tail_is_sealed_when_it_is_old(both: Ledger, stream: Stream, desk: Desk) -> None:
    """A frame waits for 60 s, counted from when it was first seen; then all is sealed, and the tail is empty."""
    append(stream, "facts", all_facts(CAMPAIGN))
    drain(both, stream)
    follower = SealFollower(both, desk.context("a"), SealWhen(10**9, 60))
    for seconds in (0, 30, 29):
        desk.seconds += seconds
        follower.step(frozenset())
    assert desk.logged("sealed") == []
    desk.seconds += 1
    follower.step(frozenset())
    (line,) = desk.logged("sealed")
    partitions = {f"{FACTS}/{partition_of(FACTS, problem)}" for problem in CAMPAIGN.cells}
    assert partitions | {f"{CONTROL}/0"} <= set(line["admissions"])
    assert line["admissions"][f"{CONTROL}/0"] == [1, both.cut().at(CONTROL, 0)]
    desk.seconds += 100
    follower.step(frozenset())
    assert len(desk.logged("sealed")) == 1
    assert follower.finish()


def test_one_sealer_seals_a_large_tail_and_merges_segments(both: Ledger, stream: Stream, desk: Desk) -> None:
    """A tail of at least one byte is sealed at once, by the holder of the lease alone.

    Small segments become one when eight of a type have gathered, and not before: each would be written again each time.
    """
    followers = [SealFollower(both, desk.context(name), SealWhen(1, 10**9)) for name in ("a", "b")]
    for number, facts in enumerate(attempts(CAMPAIGN)):
        if number == TOGETHER:
            break
        assert desk.logged("compacted") == []
        append(stream, f"epoch-{number}", facts)
        drain(both, stream)
        for follower in followers:
            follower.step(frozenset())
    assert [line["holder"] for line in desk.logged("sealed")] == ["a"] * TOGETHER
    assert {line["superseded"] % TOGETHER for line in desk.logged("compacted")} == {0}
    with closing(Questions(both)) as questions:
        assert questions.rows("SELECT count(*) AS n FROM execution_finished") == [{"n": TOGETHER}]


def test_a_missing_sink_is_reported_of(both: Ledger, stream: Stream, desk: Desk) -> None:
    """Records wait and no partition is leased: a warning every 15 s; none while nothing waits."""
    stop = threading.Event()
    watch = SinkWatch(Steps(stop, 9), both, stream, desk.context("a"))
    desk.seconds += 15
    watch.step(frozenset())
    assert desk.logged("no sink") == []
    append(stream, "facts", [opening(CAMPAIGN)])
    watch.step(frozenset())
    assert desk.logged("no sink") == []
    desk.seconds += 15
    watch.step(frozenset())
    assert [line["waiting"] for line in desk.logged("no sink")] == [[f"{CONTROL}/0"]]


def test_what_no_group_divides_is_assigned_nothing() -> None:
    """Sealing and calibrating go by a named lease."""
    assert Alone().assigned(0.0) == frozenset()
