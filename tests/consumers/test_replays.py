"""Named replays: what is stored of a question, its id, its flips, and that asking again gives the same verdicts."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lapledger.consumers.derive.calibrator import CalibrationOrder, calibrate
from lapledger.consumers.derive.named_replay_reader import (
    check_replay,
    find_replay,
    named,
    shared_calibration,
    stored_verdicts,
    verify_replays,
)
from lapledger.consumers.derive.named_replay_writer import Draft, Label, check_free, draft, store
from lapledger.consumers.ingest.sink import drain
from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import Event, ReplayCompleted, ReplayCompletedV1
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Status
from lapledger.replay.loading import KERNEL, JudgedCampaign, judge_snapshot, load, stored_calibration
from tests.consumers.histories import Campaign, Cell, all_facts, attempts, opening, program_id, requests
from tests.consumers.ledgers import append, ledger_with

CORRECT, HALF = Criterion(), Criterion(tau="50")
AFFINE = Criterion(tau="50", calibration="affine")


def campaign(name: str, *, a: float = 1, b: float = 0, programs: str = "r0 r1 r2 r3 x") -> Campaign:
    """Three problems, four references of 10 to 40 and `x` of 25 ms on four tests, through a drift of a and b."""
    ms = {"r0": 10, "r1": 20, "r2": 30, "r3": 40, "x": 25}
    cells = {
        problem: {
            item: tuple(Cell(ms=(a * ms[item] * scale * (test + 1) + b,)) for test in range(4))
            for item in programs.split()
        }
        for scale, problem in enumerate(("alpha", "beta", "gamma"), start=1)
    }
    return Campaign(name, cells)


def run_facts(run: Campaign) -> Iterator[Event]:
    """A campaign over problems that the ledger holds already."""
    yield opening(run)
    yield from requests(run)
    yield from (event for events in attempts(run) for event in events)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Campaign `main`, and `again` in a state that is 1.5 times slower and 53 ms behind, without r1."""
    root = tmp_path_factory.mktemp("template") / "ledger"
    again = campaign("again", a=1.5, b=53, programs="r0 r2 r3 x")
    ledger_with(root, all_facts(campaign("main")), run_facts(again)).close()
    return root


@pytest.fixture
def ledger(template: Path, tmp_path: Path) -> Iterator[Ledger]:
    """A copy of both campaigns."""
    shutil.copytree(template, tmp_path / "ledger")
    with closing(open_ledger(tmp_path / "ledger")) as session:
        yield session


def judged(questions: Questions, name: str, criterion: Criterion, calibration_id: str | None = None) -> JudgedCampaign:
    """One campaign judged under a criterion, with a stored calibration."""
    calibration = stored_calibration(questions, calibration_id) if calibration_id else None
    return judge_snapshot(load(questions, name), criterion, calibration)


def made(ledger: Ledger, name: str, criterion: Criterion, **more: str | None) -> Draft:
    """The draft of a named replay over `main`, at the cut of now."""
    with closing(Questions(ledger)) as questions:
        before = more.get("against")
        against = find_replay(questions, before) if before else None
        result = judged(questions, more.get("campaign") or "main", criterion, more.get("calibration"))
        return draft(ledger, result, Label(name, "a reason", "9.9"), against=against)


def keep(ledger: Ledger, item: Draft, criterion: Criterion) -> None:
    """Stores a draft and admits it."""
    with closing(ledger.stream()) as stream:
        store(ledger, Producer(stream, f"epoch-{item.event.name}", "test", "0"), item, criterion=criterion, name="c")
        drain(ledger, stream)


def rows(ledger: Ledger) -> list[dict]:
    """All named replays."""
    with closing(Questions(ledger)) as questions:
        return named(questions)


def test_what_is_stored_is_the_answer(ledger: Ledger) -> None:
    """p_50: x has q 1/2 and passes; of the references q is 1/6, 1/3, 2/3, 5/6. So 3 of 5 pass on every problem."""
    item = made(ledger, "half", HALF)
    keep(ledger, item, HALF)
    (row,) = rows(ledger)
    assert row == asdict(item.event)
    assert (row["campaign_id"], row["criterion_hash"], row["kernel"], row["release"]) == (
        "main",
        HALF.hash,
        KERNEL,
        "9.9",
    )
    table = json.loads(row["result"])
    with closing(Questions(ledger)) as questions:
        warnings = list(judged(questions, "main", HALF).warnings)
    assert (table["k"], table["warnings"]) == (1, warnings)
    assert sum(item["passed"] for item in table["estimates"]) == 9
    message = stored_verdicts(ledger, row)
    assert message is not None
    assert {program for (problem, program), (status, _) in message.items() if status == Status.PASS} == {
        program_id(problem, name) for problem in ("alpha", "beta", "gamma") for name in ("r0", "r1", "x")
    }
    assert message["alpha", program_id("alpha", "r3")] == (Status.FAIL, "too slow: q 5/6 = 0.8333 > 0.5")


def test_the_id_knows_neither_name_nor_cut_nor_release(ledger: Ledger) -> None:
    """The same question at a later cut under another name has the same id; k, criterion and campaign count."""
    first = made(ledger, "a", HALF)
    keep(ledger, made(ledger, "other", CORRECT), CORRECT)
    later = made(ledger, "b", HALF)
    assert later.event.cut != first.event.cut
    assert later.event.replay_id == first.event.replay_id
    with closing(Questions(ledger)) as questions:
        deeper = draft(ledger, replace(judged(questions, "main", HALF), k=2), Label("c", "", "0"), against=None)
    ids = {first.event.replay_id, deeper.event.replay_id, made(ledger, "d", CORRECT).event.replay_id}
    assert len({*ids, made(ledger, "e", HALF, campaign="again").event.replay_id}) == 4


def test_late_facts_give_another_id(ledger: Ledger) -> None:
    """A program that joins nobody's pool is new evidence all the same: its verdict is part of the answer."""
    before = made(ledger, "a", HALF).event
    with closing(Questions(ledger)) as questions:
        result = judged(questions, "main", HALF)
        row = dict(result.snapshot.rows)
        row[program_id("alpha", "x")] = blob_digest(b"another attempt")
        after = draft(
            ledger, replace(result, snapshot=replace(result.snapshot, rows=row)), Label("a", "", ""), against=None
        )
    assert after.event.replay_id != before.replay_id


def test_nothing_is_stored_twice(ledger: Ledger) -> None:
    """Neither the same question nor the same name; both say so in one line."""
    keep(ledger, made(ledger, "half", HALF), HALF)
    with closing(Questions(ledger)) as questions:
        with pytest.raises(UserError, match="stored already as 'half'"):
            check_free(questions, made(ledger, "other", HALF).event)
        with pytest.raises(UserError, match="a replay 'half' is stored already"):
            check_free(questions, made(ledger, "half", CORRECT).event)
    assert len(rows(ledger)) == 1


def test_flips_are_against_the_one_that_is_named(ledger: Ledger) -> None:
    """From correct to p_50 r2 and r3 of each problem flip, six in all; within one question none."""
    keep(ledger, made(ledger, "all", CORRECT), CORRECT)
    item = made(ledger, "half", HALF, against="all")
    assert item.event.flipped == 6
    assert item.flips is not None
    assert {(flip.before, flip.after) for flip in item.flips} == {("pass", "fail")}
    assert {flip.program for flip in item.flips} == {
        program_id(problem, name) for problem in ("alpha", "beta", "gamma") for name in ("r2", "r3")
    }
    assert item.event.flips_blob == blob_digest(item.blobs[1])
    assert made(ledger, "same", CORRECT, against="all").event.flipped == 0
    assert made(ledger, "alone", HALF).event.flips_blob is None


def test_requesting_again_at_its_cut_agrees(ledger: Ledger) -> None:
    """Whatever was admitted since; another kernel is noted and not compared by evidence."""
    keep(ledger, made(ledger, "half", HALF), HALF)
    append(ledger, "epoch-third", run_facts(campaign("third", a=9)))
    (row,) = rows(ledger)
    with closing(Questions(ledger)) as questions:
        again = check_replay(ledger, questions, row)
        assert (again.differences, again.note, again.judged.criterion) == ([], "", HALF)
        older = check_replay(ledger, questions, {**row, "kernel": "0.1.0"})
        assert "by kernel 0.1.0" in older.note
        assert verify_replays(ledger, questions) == (1, [], [])


def forged(ledger: Ledger, **changed: str) -> ReplayCompleted:
    """A stored replay whose verdict on r3 of alpha was turned into a pass."""
    item = made(ledger, "half", HALF)
    held = json.loads(item.blobs[0])
    columns = held["problems"][0]
    columns["status"][columns["programs"].index(program_id("alpha", "r3"))] = 1
    blob = ledger.blobs.put(json.dumps(held).encode())
    return replace(item.event, verdicts_blob=blob, **changed)


def test_a_stored_verdict_is_never_the_truth(ledger: Ledger) -> None:
    """One altered verdict is named, by asking again and by verification."""
    keep(ledger, made(ledger, "base", CORRECT), CORRECT)
    append(ledger, "epoch-forger", [declared(HALF), forged(ledger)])
    with closing(Questions(ledger)) as questions:
        again = check_replay(ledger, questions, find_replay(questions, "half"))
        (line,) = again.differences
        assert line == f"{program_id('alpha', 'r3')}: stored as pass, the facts at its cut say fail"
        count, problems, notes = verify_replays(ledger, questions)
    assert (count, notes) == (2, [])
    assert problems == [f"replay 'half' ({again.row['replay_id'][:12]}): {line}"]


def declared(criterion: Criterion) -> Event:
    """The criterion as a fact."""
    from lapledger.consumers.derive.rewarder import declaration

    return declaration(criterion, "c")


def test_one_id_with_two_answers_is_reported(ledger: Ledger) -> None:
    """The second telling of an id with other verdicts is a contradiction; the first one counts."""
    keep(ledger, made(ledger, "half", HALF), HALF)
    append(ledger, "epoch-forger", [forged(ledger)])
    with closing(Questions(ledger)) as questions:
        _, problems, _ = verify_replays(ledger, questions)
    (row,) = rows(ledger)
    message = stored_verdicts(ledger, row)
    assert message is not None
    assert message["alpha", program_id("alpha", "r3")][0] == Status.FAIL
    (line,) = problems
    assert "two sets of verdicts" in line
    assert row["replay_id"][:12] in line


def test_a_replay_of_the_first_version_is_read(ledger: Ledger) -> None:
    """It holds no verdicts: it is listed, asked again, and nothing is compared."""
    event = asdict(made(ledger, "old", HALF).event)
    for name in ("release", "verdicts_blob", "against", "flipped", "flips_blob"):
        del event[name]
    append(ledger, "epoch-old", [declared(HALF), ReplayCompletedV1(**event)])
    (row,) = rows(ledger)
    assert (row["release"], row["verdicts_blob"], row["flipped"]) == ("", None, None)
    with closing(Questions(ledger)) as questions:
        assert "holds no verdicts" in check_replay(ledger, questions, row).note
    assert made(ledger, "new", CORRECT, against="old").event.flipped is None


def test_a_replay_is_found_by_name_or_id(ledger: Ledger) -> None:
    """An unknown word lists what there is; a cut before it was stored does not hold it."""
    item = made(ledger, "half", HALF)
    keep(ledger, item, HALF)
    with closing(Questions(ledger)) as questions:
        for text in ("half", item.event.replay_id, item.event.replay_id[:8]):
            assert find_replay(questions, text)["replay_id"] == item.event.replay_id
        with pytest.raises(UserError, match=r"no replay 'hal' .*\(the latest: half\)"):
            find_replay(questions, "hal")
    with closing(Questions(ledger, Cut.parse(item.event.cut))) as questions:
        assert named(questions) == []


def test_campaigns_meet_only_through_a_calibration_between_them(ledger: Ledger) -> None:
    """`main` and `again` meet when one of the replays was judged through the map of the one into the other."""
    keep(ledger, made(ledger, "first", HALF), HALF)
    keep(ledger, made(ledger, "second", HALF, campaign="again"), HALF)
    with closing(ledger.stream()) as stream:
        fit = calibrate(
            ledger, Producer(stream, "epoch-fit", "test", "0"), CalibrationOrder(AFFINE, "main", "again")
        ).kept
        drain(ledger, stream)
    assert fit.refused == ""
    keep(ledger, made(ledger, "mapped", AFFINE, campaign="again", calibration=fit.calibration_id), AFFINE)
    with closing(Questions(ledger)) as questions:
        first, second, mapped = (find_replay(questions, name) for name in ("first", "second", "mapped"))
        assert shared_calibration(questions, second, mapped) is None
        assert (
            shared_calibration(questions, first, mapped)
            == shared_calibration(questions, mapped, first)
            == fit.calibration_id
        )
        with pytest.raises(UserError, match="only through a named calibration"):
            shared_calibration(questions, first, second)
        again = check_replay(ledger, questions, mapped)
    assert (again.differences, again.note) == ([], "")
