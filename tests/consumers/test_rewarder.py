"""The online rewarder: at every reward's recorded cut the offline replay gives the same reward, whatever happened."""

import shutil
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from histories import Campaign, Cell, all_facts, attempts, corpus_facts, opening, program_id, requests
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.rewarder import assign
from consumers.sealer import seal
from consumers.sink import drain
from ledger.events import Event
from ledger.questions import Questions
from ledger.store.cuts import Cut
from ledger.store.opened import Ledger, create_ledger, open_ledger
from ledger.streams.local import LocalStream
from ledger.streams.producer import Producer
from replay.criteria import Criterion
from replay.shell import load, rewards

CRITERION = Criterion(tau="50")


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
                if not questions.rows("SELECT 1 FROM campaign"):
                    return
            assign(ledger, self.producer(stream), CRITERION, name="p_50")
            if admit and not kill:
                drain(ledger, stream)


cells = st.builds(
    Cell,
    st.sampled_from(["accepted", "accepted", "accepted", "accepted", "wrong_answer", "time_limit"]),
    st.lists(st.integers(1, 6).map(float), min_size=1, max_size=2).map(tuple),
)


@st.composite
def campaigns(draw: st.DrawFn) -> Campaign:
    """Two problems, three to five programs on three tests, some works run twice, some with faults first."""
    found = {}
    for problem in ("alpha", "beta"):
        names = ["r1", "r2", "r3", "x", "y"][: draw(st.integers(3, 5))]
        found[problem] = {name: tuple(draw(cells) for _ in range(3)) for name in names}
    surplus = draw(
        st.dictionaries(st.tuples(st.sampled_from(["alpha", "beta"]), st.just("r1"), st.integers(0, 2)), cells)
    )
    return Campaign("main", found, surplus=surplus)


@settings(max_examples=12)
@given(campaign=campaigns(), data=st.data())
def test_live_equals_replay(
    template: Path, tmp_path_factory: pytest.TempPathFactory, campaign: Campaign, data: st.DataObject
) -> None:
    """The same history, interleaved, delayed, duplicated and killed: every live reward equals the replay at its cut."""
    root = tmp_path_factory.mktemp("history") / "ledger"
    shutil.copytree(template, root)
    house = House(root)
    house.append(
        [list(corpus_facts(campaign)), [opening(campaign), *requests(campaign)]], repeat=data.draw(st.booleans())
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
    house.reward(admit=True, kill=False)
    with closing(open_ledger(root)) as ledger:
        check_every_reward(ledger)
        seal(ledger)
        check_every_reward(ledger)


def check_every_reward(ledger: Ledger) -> None:
    """Every stored reward follows from the facts at its cut, and every decided candidate has one at the end."""
    with closing(Questions(ledger)) as questions:
        stored = questions.rows("SELECT * FROM reward")
        told = questions.rows("SELECT reward_id, count(DISTINCT value) AS n FROM reward_assigned GROUP BY reward_id")
        final, _ = rewards(load(questions), CRITERION)
    assert all(row["n"] == 1 for row in told)
    by_cut = {cut: replayed(ledger, cut) for cut in {row["cut"] for row in stored}}
    for row in stored:
        assert by_cut[row["cut"]][row["reward_id"]] == row
    assert {reward.reward_id for reward in final} <= {row["reward_id"] for row in stored}


def replayed(ledger: Ledger, cut: str) -> dict[str, dict[str, object]]:
    """The rewards that the offline replay derives at a cut."""
    with closing(Questions(ledger, Cut.parse(cut))) as questions:
        derived, _ = rewards(load(questions), CRITERION)
    return {reward.reward_id: asdict(reward) for reward in derived}


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
