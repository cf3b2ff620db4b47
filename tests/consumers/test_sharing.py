"""Rollouts of one text: it is run once, and each of them is judged, rewarded, estimated and proven as a sample."""

from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lapledger.consumers.derive.reward_audit import Trace, trace, verify_rewards
from lapledger.consumers.derive.reward_evidence import dependencies_of
from lapledger.consumers.derive.rewarder import assign
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.events import Event, GroupOpened, ProgramAdded, RolloutSampled
from lapledger.ledger.proof import verify
from lapledger.ledger.proof.bundles.reward_bundle import write_reward_bundle
from lapledger.ledger.proof.bundles.verifier import reward as reward_verifier
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import judge_campaign, load
from tests.consumers.bundle_edits import files_of, resealed, written
from tests.consumers.histories import Campaign, Cell, attempts, corpus_facts, opening, program_id, requests, shares
from tests.consumers.ledgers import ledger_with

SCORE = Criterion(tau="50", reading="score", reward="collapsed", shape="continuous")
MULTITASK = Criterion(tau="50", reading="score", reward="multitask")
MODEL = "run-1"
GROUPS = {"x": "a", "y": "a", "z": "b", "v": "a", "u": "b", "w": "b"}
"""Candidate -> its group; the human programs r1, r2 and r3 have none."""


def cells(ms: float, outcome: str = "accepted") -> tuple[Cell, Cell]:
    """On the correctness test and on the optimization test."""
    return Cell(outcome, (ms,)), Cell(outcome, (ms,))


def campaign() -> Campaign:
    """References of 2, 4 and 6 ms; x of 5 ms with its twins y and z; v, of r1's source, with its twin u; w is wrong."""
    run = {"r1": cells(2), "r2": cells(4), "r3": cells(6), "x": cells(5), "v": cells(3), "w": cells(1, "wrong_answer")}
    return Campaign("main", {"p": run}, twins={("p", "y"): "x", ("p", "z"): "x", ("p", "u"): "v"})


def program(event: Event) -> Event:
    """Candidates are rollouts of one training run, and v and u have the source of the reference r1."""
    if not isinstance(event, ProgramAdded) or event.name[0] not in GROUPS:
        return event
    source = blob_digest(b"r1") if event.name[0] in "vu" else event.source_blob
    return replace(event, model=MODEL, label="", rollout_id=event.name[0], source_blob=source)


def groups() -> list[Event]:
    """Two groups of three on the problem, opened in the order a, b."""
    common: dict[str, Any] = {"problem_id": "p", "policy": 1}
    session = [
        GroupOpened(**common, group_id=name, training_id="run", size=3, prompt_blob=blob_digest(b"")) for name in "ab"
    ]
    sampled = [
        RolloutSampled(
            **common,
            rollout_id=name,
            group_id=group,
            ordinal=0,
            prompt_tokens=0,
            completion_tokens=0,
            completion_blob=blob_digest(b""),
            log_probabilities_blob=None,
            finish_reason="stop",
            seed=None,
            temperature=1.0,
        )
        for name, group in GROUPS.items()
    ]
    return [*session, *sampled]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """The campaign with its blobs."""
    item = campaign()
    seen = [program(event) for event in corpus_facts(item)]
    lent = [replace(s, source_blob=blob_digest(b"r1")) if "/u." in s.program_id else s for s in shares(item)]
    run = [event for events in attempts(item) for event in events]
    made = ledger_with(tmp_path / "ledger", seen, groups(), [*lent, opening(item)], [*requests(item), *run])
    made.blobs.put_many([b"", b"in", b"out", *(name.encode() for name in ("r1", "r2", "r3", "x", "w"))])
    return made


def rewarded(ledger: Ledger, criterion: Criterion) -> dict[str, dict[str, Any]]:
    """Program's letter -> its reward, of the candidates."""
    with closing(ledger.stream()) as stream:
        assign(ledger, Producer(stream, f"epoch-{criterion.reward}", "test", "0"), criterion, name="asked")
        drain(ledger, stream)
    with closing(Questions(ledger)) as questions:
        rows = questions.rows("SELECT * FROM reward WHERE criterion_hash = $hash", hash=criterion.hash)
    result = {row["program_id"].split("/")[1].split(".")[0]: row for row in rows}
    return {name: row for name, row in result.items() if name in GROUPS}


def test_every_rollout_has_a_reward_of_its_own(ledger: Ledger) -> None:
    """5 ms is behind two of the three references: q = 2/3, e = 1 - 2q = -1/3. 3 ms, without r1 of the same text, leads.

    With r1 in its pool, v would be at q = 1/3.
    """
    result = rewarded(ledger, SCORE)
    values = {name: row["value"] for name, row in result.items()}
    assert values == {
        name: pytest.approx(v) for name, v in zip("xyzvuw", (-1 / 3, -1 / 3, -1 / 3, 1, 1, -1), strict=True)
    }
    assert {name: row["pool_size"] for name, row in result.items()} == dict(
        zip("xyzvuw", (3, 3, 3, 2, 2, 3), strict=True)
    )
    assert len({row["evidence_digest"] for row in result.values()}) == 6


def test_a_text_in_two_groups_is_paid_as_each_group_is(ledger: Ledger) -> None:
    """One group by correctness, x is right: +1; the next by speed, its q of 2/3 misses the half: -1. v leads: +1."""
    values = {name: row["value"] for name, row in rewarded(ledger, MULTITASK).items()}
    assert values["x"] == values["y"]
    assert {values["x"], values["z"]} == {1.0, -1.0}
    assert values["v"] == values["u"] == 1.0


def test_every_rollout_is_a_sample(ledger: Ledger) -> None:
    """Of six, five are right and two of these are within the half: p_100 = 5/6 and p_50 = 2/6.

    pass@2 is 1 when one alone is wrong, and 1 - C(4,2)/C(6,2) = 1 - 6/15 for two of six.
    """
    with closing(Questions(ledger)) as questions:
        snapshot = load(questions)
        for tau, shares_of_k in (("100", (5 / 6, 1)), ("50", (2 / 6, 0.6))):
            for k, share in enumerate(shares_of_k, 1):
                judged = judge_campaign(questions, snapshot, Criterion(tau=tau, reading="score"), k=k)
                (result,) = (item for item in judged.estimates if item.model == MODEL)
                assert (result.programs, result.undecided) == (6, 0)
                assert result.value == pytest.approx(share)


def traced(ledger: Ledger, name: str) -> Trace:
    """The trace of a candidate's reward."""
    row = rewarded(ledger, SCORE)[name]
    with closing(Questions(ledger)) as questions:
        return trace(ledger, questions, row["reward_id"])


def test_a_twin_s_reward_is_traced_to_the_runs_of_the_one_that_was_run(ledger: Ledger) -> None:
    """The same attempts and timings, told with the program that was run; computed again, and no difference."""
    mine, twin = traced(ledger, "x"), traced(ledger, "y")
    assert (mine.executed, twin.executed) == (program_id("p", "x"), program_id("p", "x"))
    assert twin.tests == mine.tests
    assert [timing["wall_ns"] for test in twin.tests for timing in test.timings] == [5_000_000] * 2
    assert twin.differences == mine.differences == ()


def test_before_and_after_sealing_all_of_it_is_proven(ledger: Ledger) -> None:
    """Frames, chains and rewards; a second derivation adds nothing."""
    before = rewarded(ledger, SCORE)
    for change in (lambda: None, lambda: seal(ledger), lambda: compact(ledger, 0)):
        change()
        assert verify(ledger).problems == ()
        with closing(Questions(ledger)) as questions:
            assert verify_rewards(ledger, questions) == (9, [], [])
        assert rewarded(ledger, SCORE) == before


def rewritten(path: Path, without: str) -> None:
    """The bundle without the events of this type."""
    files = files_of(path)
    gone = [name for name in files if name.startswith(f"events/{without}.")]
    assert gone
    written(path, resealed({name: data for name, data in files.items() if name not in gone}))


@pytest.mark.parametrize("name", ["x", "y", "u"])
def test_a_twin_s_bundle_is_proven_with_the_fact_that_lends(
    ledger: Ledger, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its evidence names the attempts of the program that was run; without the fact they are not its own."""
    result = traced(ledger, name)
    with closing(Questions(ledger)) as questions:
        dependencies = dependencies_of(ledger, questions, result)
    assert dependencies.evidence is not None
    assert [row[0] for row in asdict(dependencies.evidence)["programs"]][-1] == result.reward["program_id"]
    path = tmp_path / "reward.zip"
    write_reward_bundle(path, ledger, dependencies)
    assert reward_verifier.main([], str(path)) == 0
    if name != "x":
        capsys.readouterr()
        rewritten(path, "execution.shared")
        assert reward_verifier.main([], str(path)) == 1
        assert "its outcome or its timings are not those of its end" in capsys.readouterr().out
