"""The audit: a trace holds what its reward rests on, and a reward that does not follow from the facts is found."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lapledger.consumers.derive.reward_audit import find_reward, trace, verify_rewards
from lapledger.consumers.derive.rewarder import assign, declaration
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import CriterionDeclared, RewardAssigned
from lapledger.ledger.ops.status import ledger_status
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import KERNEL
from tests.consumers.histories import MS, Campaign, Cell, all_facts, program_id
from tests.consumers.ledgers import append, ledger_with

CRITERION = Criterion(tau="50")
CAMPAIGN = Campaign(
    "main",
    {
        "alpha": {
            "r1": (Cell(), Cell(ms=(10.0, 30.0, 20.0)), Cell(ms=(10.0,))),
            "r2": (Cell(), Cell(ms=(20.0,)), Cell(ms=(20.0,))),
            "r3": (Cell(), Cell(ms=(30.0,)), Cell(ms=(30.0,))),
            "wrong": (Cell("wrong_answer"), Cell(ms=(1.0,)), Cell(ms=(1.0,))),
        }
    },
    surplus={("alpha", "r1", 1): Cell(ms=(500.0,))},
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The campaign with its rewards."""
    with closing(ledger_with(tmp_path / "ledger", all_facts(CAMPAIGN))) as opening:
        with closing(opening.stream()) as stream:
            assign(opening, Producer(stream, "epoch-rewards", "test", "0"), CRITERION, name="p_50")
            drain(opening, stream)
        yield opening


def of(questions: Questions, name: str) -> str:
    """The id of a program's reward."""
    rows = questions.rows("SELECT reward_id FROM reward WHERE program_id = $id", id=program_id("alpha", name))
    return str(rows[0]["reward_id"])


def test_a_trace_walks_from_the_reward_to_raw_timings(ledger: Ledger) -> None:
    """r1 on test 1: repetitions 10, 30, 20 ms, median 20, ties with r2 and beats r3: rank 1 of 4, percentile 25."""
    with closing(Questions(ledger)) as questions:
        result = trace(ledger, questions, of(questions, "r1")[:12])
    assert result.differences == ()
    assert result.recomputed == result.reward
    assert (result.reward["value"], result.reward["c"], result.reward["g"]) == (1.0, True, True)
    assert (result.criterion["name"], result.calibration) == ("p_50", None)
    assert [p.split(".")[0] for p in result.pool] == ["alpha/r1", "alpha/r2", "alpha/r3"]
    test = result.tests[1]
    assert (test.outcome, test.roles, test.duration_ns) == ("accepted", ("optimization",), 20 * MS)
    assert (test.rank, test.percentile) == (1, 25.0)
    assert test.references_ns == (20 * MS, 30 * MS)  # r2 and r3: a program is not ranked against itself
    assert [t["wall_ns"] for t in test.timings] == [10 * MS, 30 * MS, 20 * MS]  # the surplus attempt is not among them
    assert result.tests[0].rank is None


def test_a_trace_reports_why_a_program_failed(ledger: Ledger) -> None:
    """The wrong one: no c, the failed test in the reason."""
    with closing(Questions(ledger)) as questions:
        result = trace(ledger, questions, of(questions, "wrong"))
    assert (result.reward["value"], result.reward["c"]) == (-1.0, False)
    assert result.reason == "wrong_answer on alpha/t0"


def test_every_true_reward_is_proven_before_and_after_sealing(ledger: Ledger) -> None:
    """Four rewards, no difference; the later facts of a second campaign change nothing at the old cut."""
    for _ in range(2):
        with closing(Questions(ledger)) as questions:
            assert verify_rewards(ledger, questions) == (4, [], [])
        seal(ledger)
        append(ledger, "epoch-later", all_facts(replace(CAMPAIGN, name="later")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": 1.0}, "value is 1.0, recomputed -1.0"),
        ({"g": True}, "g is True, recomputed False"),
        ({"evidence_digest": "0" * 64}, "evidence_digest is"),
        ({"pool_size": 9}, "pool_size is 9, recomputed 2"),
    ],
)
def test_a_forged_reward_is_found(ledger: Ledger, change: dict[str, object], message: str) -> None:
    """A reward event that anybody appended, with one column changed, is named with what it should be."""
    with closing(Questions(ledger)) as questions:
        row = find_reward(questions, of(questions, "r3"))
    forged = replace(RewardAssigned(**row), reward_id="f" * 64, **change)  # type: ignore[arg-type]
    append(ledger, "epoch-forger", [forged])
    with closing(Questions(ledger)) as questions:
        count, problems, _ = verify_rewards(ledger, questions)
        assert count == 5
        assert len([p for p in problems if message in p and p.startswith("reward ffffffffffff of alpha/r3.")]) == 1
        assert message in " ".join(trace(ledger, questions, "ffff").differences)


def test_a_reward_of_an_undeclared_criterion_is_found(ledger: Ledger) -> None:
    """It cannot be weighed again, and the line says so."""
    with closing(Questions(ledger)) as questions:
        row = find_reward(questions, of(questions, "r3"))
    append(ledger, "epoch-forger", [replace(RewardAssigned(**row), reward_id="f" * 64, criterion_hash="e" * 64)])
    with closing(Questions(ledger)) as questions:
        _, problems, _ = verify_rewards(ledger, questions)
    assert len(problems) == 1
    assert "eeeeeeeeeeee is named by a reward but not stored" in problems[0]


def test_a_criterion_s_text_must_give_its_hash(ledger: Ledger) -> None:
    """A declaration whose text was swapped is quarantined, so rewards that name it cannot be weighed."""
    with closing(Questions(ledger)) as questions:
        row = find_reward(questions, of(questions, "r3"))
    swapped = replace(declaration(Criterion(tau="10"), "x"), criterion_hash="e" * 64)
    forged = replace(RewardAssigned(**row), reward_id="f" * 64, criterion_hash="e" * 64)
    append(ledger, "epoch-forger", [swapped], [forged])
    assert sum(partition.quarantined for partition in ledger_status(ledger).partitions) == 1
    with closing(Questions(ledger)) as questions:
        _, problems, _ = verify_rewards(ledger, questions)
    assert "eeeeeeeeeeee is named by a reward but not stored" in problems[0]


def test_a_reward_reported_with_two_values_is_result(ledger: Ledger) -> None:
    """The same id with another value cannot come from the same facts: one of the two was made up."""
    with closing(Questions(ledger)) as questions:
        row = find_reward(questions, of(questions, "r3"))
    append(ledger, "epoch-forger", [replace(RewardAssigned(**row), value=1.0)])
    with closing(Questions(ledger)) as questions:
        _, problems, _ = verify_rewards(ledger, questions)
    assert problems == [
        f"reward {row['reward_id'][:12]} of {row['program_id']}: stored with two values, which no two derivations give"
    ]


@pytest.mark.parametrize(
    ("canonical", "message"),
    [({"schema": 2}, "'schema': 2 is not known here"), ({"schema": 1, "speed": 3}, "unknown key 'speed'")],
)
def test_a_criterion_of_another_release_stops_nothing_else(
    ledger: Ledger, canonical: dict[str, object], message: str
) -> None:
    """A criterion that cannot be read here is one problem line; the other rewards are weighed all the same."""
    text = json.dumps(canonical)
    strange = CriterionDeclared(criterion_hash=blob_digest(text.encode()), name="strange", canonical=text)
    with closing(Questions(ledger)) as questions:
        row = find_reward(questions, of(questions, "r3"))
    named = replace(RewardAssigned(**row), reward_id="e" * 64, criterion_hash=strange.criterion_hash)
    forged = replace(RewardAssigned(**row), reward_id="f" * 64, value=1.0)
    append(ledger, "epoch-forger", [strange], [named, forged])
    with closing(Questions(ledger)) as questions:
        count, problems, _ = verify_rewards(ledger, questions)
    assert count == 6
    assert [p for p in problems if message in p and p.startswith("1 rewards at cut")]
    assert [p for p in problems if "value is 1.0, recomputed -1.0" in p]


def test_a_reward_of_another_kernel_is_noted_not_refused(ledger: Ledger) -> None:
    """What another version of the kernel assigned is counted as not recomputed, in verify and in trace."""
    with closing(Questions(ledger)) as questions:
        row = find_reward(questions, of(questions, "r3"))
    older = [replace(RewardAssigned(**row), reward_id=digit * 64, kernel="0.9.0", value=1.0) for digit in "ef"]
    append(ledger, "epoch-older", older)
    received: list[int] = []
    with closing(Questions(ledger)) as questions:
        result = verify_rewards(ledger, questions, received.append)
        seen = trace(ledger, questions, "ffff")
    assert result == (4, [], [f"2 rewards not recomputed (kernel 0.9.0; this release has {KERNEL})"])
    assert sum(received) == 6
    assert (seen.recomputed, seen.differences) == (None, ())
    assert seen.note == f"not recomputed (kernel 0.9.0; this release has {KERNEL})"


def test_a_trace_of_a_program_that_the_campaign_lacks_is_refused(ledger: Ledger) -> None:
    """A reward that names what its campaign does not hold is the ledger's fault, told in one line."""
    with closing(Questions(ledger)) as questions:
        row = find_reward(questions, of(questions, "r3"))
    forged = replace(RewardAssigned(**row), reward_id="f" * 64, problem_id="beta", program_id="beta/x")
    append(ledger, "epoch-forger", [forged])
    with closing(Questions(ledger)) as questions, pytest.raises(UserError, match="holds no program 'beta/x'"):
        trace(ledger, questions, "ffff")


def test_a_prefix_must_name_one_reward(ledger: Ledger) -> None:
    """No reward, or several."""
    with closing(Questions(ledger)) as questions:
        with pytest.raises(UserError, match="no reward 'zz' at this cut"):
            find_reward(questions, "zz")
        with pytest.raises(UserError, match="more than one reward starts with ''; give more digits"):
            find_reward(questions, "")
