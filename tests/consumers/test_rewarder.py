"""The online rewarder: at every reward's recorded cut the offline replay gives the same reward, whatever happened."""

import shutil
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.consumers.derive.calibrator import CalibrationOrder, calibrate
from lapledger.consumers.derive.rewarder import assign
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import Event, RewardAssigned
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import evidence, find_calibration, judge_snapshot, load, rewards
from tests.consumers.histories import Campaign, Cell, all_facts, attempts, corpus_facts, opening, program_id, requests

CRITERION = Criterion(tau="50")
AFFINE = Criterion(tau="50", calibration="affine")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger to copy."""
    made = create_ledger(tmp_path_factory.mktemp("template") / "ledger", "identity-0", "now")
    made.close()
    return made.root


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours catches it."""


class House:
    """One ledger folder and the processes around it, each of which may be killed and started again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.epochs = 0

    def producer(self, stream: LocalStream) -> Producer:
        """A producer of a fresh process."""
        self.epochs += 1
        return Producer(stream, f"epoch-{self.epochs}", "test", "0")

    def append(self, batches: list[list[Event]], repeat: bool) -> None:
        """One producer process appends the batches and is killed; with `repeat` its records arrive twice."""
        with closing(open_ledger(self.root)) as ledger, closing(ledger.stream()) as stream:
            before = stream.ends()
            producer = self.producer(stream)
            for batch in batches:
                producer.append(batch)
            if repeat:
                for (name, partition), end in stream.ends().items():
                    start = before[name, partition]
                    again = [s.record for s in stream.read(name, partition, start, end) if s.offset >= start]
                    stream.append(name, partition, again)

    def admit(self, limit: int | None) -> None:
        """A sink takes at most `limit` records."""
        with closing(open_ledger(self.root)) as ledger, closing(ledger.stream()) as stream:
            drain(ledger, stream, limit)

    def reward(self, admit: bool, kill: bool) -> None:
        """A rewarder makes one pass; it may be killed after its append, before anything is admitted."""
        with closing(open_ledger(self.root)) as ledger, closing(ledger.stream()) as stream:
            with closing(Questions(ledger)) as questions:
                if not questions.rows("SELECT 1 FROM campaign WHERE campaign_id = 'main'"):
                    return
            assign(ledger, self.producer(stream), CRITERION, name="p_50")
            with suppress(UserError):  # no usable map yet
                assign(ledger, self.producer(stream), AFFINE, name="mapped p_50")
            if admit and not kill:
                drain(ledger, stream)

    def calibrate(self, clock: str) -> None:
        """A calibrator fits `old` into `main` and is killed after its append; it refuses while `main` is not done."""
        with closing(open_ledger(self.root)) as ledger, closing(ledger.stream()) as stream, suppress(UserError):
            criterion = replace(AFFINE, clock=clock)
            calibrate(ledger, self.producer(stream), CalibrationOrder(criterion, "old", "main"))


cells = st.builds(
    Cell,
    st.sampled_from(["accepted", "accepted", "accepted", "accepted", "wrong_answer", "time_limit"]),
    st.lists(st.integers(1, 6).map(float), min_size=1, max_size=2).map(tuple),
)


@st.composite
def campaigns(draw: st.DrawFn) -> Campaign:
    """Two problems, three to five programs on three tests, some works run twice, some with faults first."""
    result = {}
    for problem in ("alpha", "beta"):
        names = ["r1", "r2", "r3", "x", "y"][: draw(st.integers(3, 5))]
        result[problem] = {name: tuple(draw(cells) for _ in range(3)) for name in names}
    surplus = draw(
        st.dictionaries(st.tuples(st.sampled_from(["alpha", "beta"]), st.just("r1"), st.integers(0, 2)), cells)
    )
    return Campaign("main", result, surplus=surplus)


@settings(max_examples=8)
@given(campaign=campaigns(), data=st.data())
def test_live_equals_replay(
    template: Path, tmp_path_factory: pytest.TempPathFactory, campaign: Campaign, data: st.DataObject
) -> None:
    """The same history, interleaved, delayed, duplicated and killed: every live reward equals the replay at its cut."""
    root = tmp_path_factory.mktemp("history") / "ledger"
    shutil.copytree(template, root)
    house = House(root)
    old = before(campaign)
    stored = [[opening(old), *requests(old)], *attempts(old)]
    house.append(
        [list(corpus_facts(old)), *stored, [opening(campaign), *requests(campaign)]], repeat=data.draw(st.booleans())
    )
    waiting = data.draw(st.permutations(list(attempts(campaign))))
    while waiting:
        count = data.draw(st.integers(1, 12))
        house.append(waiting[:count], repeat=data.draw(st.booleans()))
        waiting = waiting[count:]
        if data.draw(st.booleans()):
            house.admit(data.draw(st.one_of(st.none(), st.integers(1, 20))))
        if data.draw(st.booleans()):
            house.reward(admit=data.draw(st.booleans()), kill=data.draw(st.booleans()))
    house.admit(None)
    for clock in data.draw(st.permutations(["wall", "cpu"])):
        house.calibrate(clock)
        house.admit(data.draw(st.one_of(st.none(), st.integers(1, 3))))
        house.reward(admit=data.draw(st.booleans()), kill=data.draw(st.booleans()))
    house.admit(None)
    house.reward(admit=True, kill=False)
    with closing(open_ledger(root)) as ledger:
        check_every_reward(ledger)
        seal(ledger)
        check_every_reward(ledger)


def before(campaign: Campaign) -> Campaign:
    """The campaign `old` that `main` drifted from by fresh = stored / 10 + 0.3 ms, with one reference more."""
    extra = {"r9": tuple(Cell(ms=(2.5,)) for _ in range(3))}
    result = {
        problem: {
            name: tuple(replace(cell, ms=tuple(10 * ms - 3 for ms in cell.ms)) for cell in row)
            for name, row in (programs | extra).items()
        }
        for problem, programs in campaign.cells.items()
    }
    return Campaign("old", result)


def check_every_reward(ledger: Ledger) -> None:
    """Every stored reward follows from the facts at its cut, and every decided candidate has one at the end."""
    with closing(Questions(ledger)) as questions:
        stored = questions.rows("SELECT * FROM reward")
        seen = questions.rows("SELECT reward_id, count(DISTINCT value) AS n FROM reward_assigned GROUP BY reward_id")
        final = derive(questions)
    assert all(row["n"] == 1 for row in seen)
    by_cut = {cut: replayed(ledger, cut) for cut in {row["cut"] for row in stored}}
    for row in stored:
        assert by_cut[row["cut"]][row["reward_id"]] == row
    assert {reward.reward_id for reward in final} <= {row["reward_id"] for row in stored}


def replayed(ledger: Ledger, cut: str) -> dict[str, dict[str, object]]:
    """The rewards that the offline replay derives at a cut."""
    with closing(Questions(ledger, Cut.parse(cut))) as questions:
        return {reward.reward_id: asdict(reward) for reward in derive(questions)}


def derive(questions: Questions) -> list[RewardAssigned]:
    """All rewards that follow at a cut, under the map too where one is stored."""
    snapshot = load(questions, "main")
    plain, _ = rewards(judge_snapshot(snapshot, CRITERION))
    try:
        calibration = find_calibration(questions, "main", AFFINE)
    except UserError:
        return plain
    return plain + rewards(judge_snapshot(snapshot, AFFINE, calibration))[0]


CAMPAIGN = Campaign(
    "main",
    {
        "alpha": {
            "r1": (Cell(), Cell(ms=(10.0,)), Cell(ms=(10.0,))),
            "r2": (Cell(), Cell(ms=(20.0,)), Cell(ms=(20.0,))),
            "r3": (Cell(), Cell(ms=(30.0,)), Cell(ms=(30.0,))),
            "wrong": (Cell("wrong_answer"), Cell(ms=(1.0,)), Cell(ms=(1.0,))),
            "slow": (Cell(), Cell("time_limit", (2000.0,)), Cell(ms=(25.0,))),
        }
    },
)


def filled(template: Path, root: Path, campaign: Campaign) -> Ledger:
    """A ledger that holds the whole campaign."""
    shutil.copytree(template, root)
    ledger = open_ledger(root)
    with closing(ledger.stream()) as stream:
        Producer(stream, "epoch-1", "test", "0").append(all_facts(campaign))
        drain(ledger, stream)
    return ledger


def test_collapsed_binary_rewards_by_hand(template: Path, tmp_path: Path) -> None:
    """p_50: r1 ties with the best of two others (q 1/4), r2 beats one (q 1/2, at the threshold), r3 none (q 3/4)."""
    with closing(filled(template, tmp_path / "ledger", CAMPAIGN)) as ledger, closing(ledger.stream()) as stream:
        done = assign(ledger, Producer(stream, "epoch-2", "test", "0"), CRITERION, name="p_50")
    values = {reward.program_id: (reward.value, reward.c, reward.g) for reward in done.new}
    assert values == {
        program_id("alpha", "r1"): (1.0, True, True),
        program_id("alpha", "r2"): (1.0, True, True),
        program_id("alpha", "r3"): (-1.0, True, False),
        program_id("alpha", "wrong"): (-1.0, False, True),  # fast but wrong: measured as fast, earns nothing
        program_id("alpha", "slow"): (-1.0, False, False),
    }
    assert (done.held, done.waiting) == (0, 0)


def test_deriving_twice_adds_nothing(template: Path, tmp_path: Path) -> None:
    """A second pass finds every id held, also when another process asks after sealing."""
    with closing(filled(template, tmp_path / "ledger", CAMPAIGN)) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-2", "test", "0")
        first = assign(ledger, producer, CRITERION, name="p_50")
        drain(ledger, stream)
        seal(ledger)
        second = assign(ledger, producer, CRITERION, name="p_50")
    assert (len(first.new), second.new, second.held) == (5, (), 5)


def test_an_open_problem_waits(template: Path, tmp_path: Path) -> None:
    """One work without an outcome, or with sandbox faults alone, holds back the whole problem and no other."""
    open_cells = {**CAMPAIGN.cells["alpha"], "r2": (Cell(), Cell("sandbox_fault"), Cell(ms=(20.0,)))}
    campaign = replace(CAMPAIGN, cells={"alpha": open_cells, "beta": CAMPAIGN.cells["alpha"]})
    with closing(filled(template, tmp_path / "ledger", campaign)) as ledger, closing(ledger.stream()) as stream:
        done = assign(ledger, Producer(stream, "epoch-2", "test", "0"), CRITERION, name="p_50")
    assert {reward.problem_id for reward in done.new} == {"beta"}
    assert done.waiting == 5


def test_a_surplus_attempt_changes_no_reward(template: Path, tmp_path: Path) -> None:
    """The first admitted attempt counts: a later, much slower one is surplus and leaves every id as it was."""
    with closing(filled(template, tmp_path / "one", CAMPAIGN)) as plain, closing(plain.stream()) as stream:
        before = assign(plain, Producer(stream, "epoch-2", "test", "0"), CRITERION, name="p_50")
    twice = replace(CAMPAIGN, surplus={("alpha", "r1", 1): Cell(ms=(1900.0,))})
    with closing(filled(template, tmp_path / "two", twice)) as ledger, closing(ledger.stream()) as stream:
        after = assign(ledger, Producer(stream, "epoch-2", "test", "0"), CRITERION, name="p_50")
        with closing(Questions(ledger)) as questions:
            assert questions.rows("SELECT count(*) AS n FROM execution WHERE surplus") == [{"n": 1}]
    assert [r.reward_id for r in before.new] == [r.reward_id for r in after.new]


def test_an_undecided_gate_is_no_no(template: Path, tmp_path: Path) -> None:
    """Eight references asked, two or three there: g is unknown. A program known to be wrong is -1 all the same."""
    with closing(filled(template, tmp_path / "ledger", CAMPAIGN)) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch-2", "test", "0")
        done = assign(ledger, producer, Criterion(tau="50", min_references=8), name="p_50 of 8")
        drain(ledger, stream)
        with closing(Questions(ledger)) as questions:
            stored = questions.rows("SELECT program_id, value, c, g FROM reward ORDER BY program_id")
    assert (len(done.new), done.waiting) == (2, 3)
    assert [(row["program_id"].split(".")[0], row["value"], row["c"], row["g"]) for row in stored] == [
        ("alpha/slow", -1.0, False, None),
        ("alpha/wrong", -1.0, False, None),
    ]


def test_the_evidence_reports_every_kind_of_every_test(template: Path, tmp_path: Path) -> None:
    """Any one flag of any one test gives other evidence: the kinds are not run together."""
    with closing(filled(template, tmp_path / "ledger", CAMPAIGN)) as ledger, closing(Questions(ledger)) as questions:
        snapshot = load(questions)
    (m,) = snapshot.problems
    result = {evidence(snapshot, m, m.programs[0])}
    for kind in ("original", "correctness", "optimization"):
        for test in range(len(m.tests.ids)):
            flags = getattr(m.tests, kind).copy()
            flags[test] = not flags[test]
            result.add(evidence(snapshot, replace(m, tests=replace(m.tests, **{kind: flags})), m.programs[0]))
    for cut in (0, 1, 2, 3):  # as index lists run together, all of these read "0 1 2"
        first = np.arange(3) < cut
        changed = replace(m.tests, correctness=first, optimization=~first)
        result.add(evidence(snapshot, replace(m, tests=changed), m.programs[0]))
    assert len(result) == 1 + 9 + 3  # cut 1 is how they stand
