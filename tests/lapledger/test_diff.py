"""`lap diff` on synthetic campaigns: which verdicts flip, and the timings that turned them, worked out by hand."""

import dataclasses
import json
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.derive.named_replay_reader import find_replay
from lapledger.ledger.events import ReplayCompleted
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import open_ledger
from tests.support.lap import lap, well
from tests.support.screen_ledgers import (
    MODELS,
    MS,
    REFERENCES,
    STEPS,
    append,
    campaign_facts,
    make_campaign,
    program_id,
    run_facts,
)

CORRECT = ("--criterion", "correct", "--name", "loose", "--reason", "all that is right")
STRICT = ("--criterion", "per-test-top-30", "--name", "strict", "--reason", "only the fast")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """References of 10 to 40 ms, `middle` of 25 ms, and two replays: `loose` and `strict`."""
    root = tmp_path / "lap"
    make_campaign(root, (*REFERENCES, MODELS[0]))
    for args in (CORRECT, STRICT):
        well("replay", *args, "--store", "--ledger", root)
    return root


def test_flips_with_the_timings_that_turned_them(ledger: Path) -> None:
    """Per-test top 30 passes ref10 alone. `middle` lies at k 4 of 8, between 20 and 30 ms; ref40 at 6 of 6."""
    result = well("diff", "loose", "strict", "--ledger", ledger, "--json").json
    assert result["count"] == 4
    assert result["tally"] == [
        {"model": "human", "kind": "pass -> fail", "count": 3},
        {"model": "model", "kind": "pass -> fail", "count": 1},
    ]
    assert (result["a"]["differences"], result["b"]["differences"], result["through"]) == ([], [], None)
    flips = {flip["program"]: flip for flip in result["flips"]}
    middle = flips[program_id(STEPS, "middle")]
    assert (middle["before"], middle["after"], middle["problem"]) == ("pass", "fail", STEPS)
    assert middle["reason_after"] == "too slow: q 1/2 = 0.5 > 0.3"
    timing = middle["timing_after"]
    assert (timing["test"], timing["outcome"], timing["duration"]) == (f"{STEPS}/t0", "ok", 25 * MS)
    assert (timing["rank"], timing["references"], timing["percentile"]) == ([4, 4], 4, [50, 50])
    assert timing["next_faster"] == {"program": program_id(STEPS, "ref20"), "duration": 20 * MS}
    assert timing["next_slower"] == {"program": program_id(STEPS, "ref30"), "duration": 30 * MS}
    last = flips[program_id(STEPS, "ref40")]["timing_after"]
    assert (last["rank"], last["references"], last["next_slower"]) == ([6, 6], 3, None)


def test_the_table_reports_the_same(ledger: Path) -> None:
    """One block a flip, then the summary by model and kind, and both cuts."""
    done = well("diff", "loose", "strict", "--limit-rows", "1", "--ledger", ledger)
    assert f"{program_id(STEPS, 'middle')}  (model)  pass -> fail" in done.out
    assert "25 ms, percentile 50.0 (rank 4 of 8), between ref20." in done.out
    assert "loose -> strict: 4 flips" in done.out
    rows = [line.split() for line in done.out.splitlines() if "pass -> fail  " in line]
    assert [(row[0], row[-1]) for row in rows if row[0] in ("human", "model")] == [("human", "3"), ("model", "1")]
    assert done.out.count("cut control=") == 2
    assert "3 more flips; --limit-rows 0 shows all" in done.err
    assert well("diff", "loose", "strict", "--limit-rows", "0", "--ledger", ledger).out.count("\n  timing  ") == 4


def test_a_limit_in_force_is_reported(ledger: Path) -> None:
    """A judged limit of 26 ms makes ref30 and ref40 fail on t0; middle stays. The other side had no limit."""
    args = ("--timeout", "26ms", "--name", "limited", "--reason", "shorter", "--store")
    well("replay", *args, "--ledger", ledger)
    result = well("diff", "loose", "limited", "--ledger", ledger, "--json").json
    flips = {flip["program"]: flip for flip in result["flips"]}
    assert set(flips) == {program_id(STEPS, "ref30"), program_id(STEPS, "ref40")}
    item = flips[program_id(STEPS, "ref30")]
    assert (item["timing_before"]["limit"], item["timing_after"]["limit"]) == (None, [26 * MS, 26 * MS])
    assert item["timing_after"]["hard_limit_ns"] == 10_000 * MS
    assert "30 ms, limit 26 ms" in well("diff", "loose", "limited", "--ledger", ledger).out


def test_two_criteria_at_one_cut(ledger: Path) -> None:
    """The same flips without any stored replay; an older cut can be asked too."""
    args = ("diff", "--criterion-a", "correct", "--criterion-b", "per-test-top-30", "--ledger", ledger, "--json")
    result, stored = well(*args).json, well("diff", "loose", "strict", "--ledger", ledger, "--json").json
    assert result["flips"] == stored["flips"]
    assert result["a"]["cut"] == result["b"]["cut"]
    before = well("replay", "--list", "--ledger", ledger, "--json").json["replays"][0]["cut"]
    assert well(*args, "--at", before).json["b"]["cut"] == before
    backwards = well("diff", "strict", "loose", "--ledger", ledger, "--json").json
    assert {row["kind"] for row in backwards["tally"]} == {"fail -> pass"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "give two stored replays"),
        (("loose",), "give two stored replays"),
        (("loose", "strict", "--criterion-a", "correct"), "give two stored replays"),
        (("--criterion-a", "correct"), "--criterion-b"),
        (("loose", "none"), "no replay 'none'"),
        (("loose", "strict", "--campaign", "nightly"), "omit --campaign"),
        (("--criterion-a", "correct", "--criterion-b", "topp"), "did you mean"),
    ],
)
def test_what_cannot_be_compared_is_refused(ledger: Path, args: tuple, message: str) -> None:
    """One line and exit code 2."""
    done = lap("diff", *args, "--ledger", ledger)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err


def test_programs_of_two_campaigns_do_not_meet(ledger: Path) -> None:
    """The same programs, run again: without a calibration between the two campaigns the comparison is refused."""
    programs = (*REFERENCES, MODELS[0])
    append(ledger, [*campaign_facts("second", STEPS, programs)])
    append(ledger, [fact for program in programs for fact in run_facts("second", STEPS, program)])
    well("replay", "--campaign", "second", *CORRECT[:3], "other", *CORRECT[4:], "--store", "--ledger", ledger)
    done = lap("diff", "loose", "other", "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert "'loose' (campaign nightly) and 'other' (campaign second)" in done.err
    assert "only through a named calibration" in done.err
    named = lap(
        "replay", *STRICT[:3], "third", *STRICT[4:], "--previous", "other", "--campaign", "nightly", "--ledger", ledger
    )
    assert (named.code, named.out) == (2, "")
    assert "only through a named calibration" in named.err


def test_a_stored_verdict_that_the_facts_deny_is_stated_loudly(ledger: Path) -> None:
    """A replay that claims another verdict than its cut gives: the facts count, the exit code is 1, and it is named."""
    with closing(open_ledger(ledger)) as opening, closing(Questions(opening)) as questions:
        row = find_replay(questions, "strict")
        held = json.loads(opening.blobs.get(row["verdicts_blob"]))
        held["problems"][0]["status"] = [1 for _ in held["problems"][0]["status"]]
        blob = opening.blobs.put(json.dumps(held).encode())
    event = dataclasses.replace(ReplayCompleted(**row), name="forged", replay_id="f" * 64, verdicts_blob=blob)
    append(ledger, [event])
    done = lap("diff", "loose", "forged", "--ledger", ledger)
    assert done.code == 1
    assert "WARNING: replay 'forged' no longer matches the data at its cut: 5 differences" in done.err
    assert "stored as pass, the facts at its cut say fail" in done.err
    assert "loose -> forged: 4 flips" in done.out
    result = json.loads(lap("diff", "loose", "forged", "--ledger", ledger, "--json").out)
    assert len(result["b"]["differences"]) == 5  # four verdicts and an id that is no hash of them
    assert result["b"]["differences"][-1] == "its id is not that of its question and evidence"
