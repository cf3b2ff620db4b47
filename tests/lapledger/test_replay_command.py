"""`lap replay`, `lap why` and `lap reward` on synthetic campaigns: what is said of the unseen, and named replays.

Every figure follows by hand from the durations in `tui_ledgers` or in the test.
"""

import dataclasses
import json
import math
import os
import pty
import re
import shlex
from pathlib import Path

import pytest
from scipy import stats

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.events import CampaignOpened, GroupOpened, ProgramAdded, RolloutSampled, TimingMeasured
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.store.open_ledger import open_ledger
from tests.support.lap import lap, sql, well
from tests.support.screen_ledgers import (
    MODELS,
    MS,
    REFERENCES,
    STEPS,
    Program,
    append,
    campaign_facts,
    make_campaign,
    problem_facts,
    program_id,
    run_facts,
)

KILLED = Program("killed", (5, 10_000), model="model", outcomes={1: "time_limit"})


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Four references of 10 to 40 ms and three model programs: one behind half, one wrong, one half run."""
    make_campaign(tmp_path / "lap", (*REFERENCES, *MODELS))
    return tmp_path / "lap"


def replay(root: Path, *args: object) -> dict:
    """The JSON of one criterion."""
    (actual,) = well("replay", *args, "--ledger", root, "--json").json["criteria"]
    return actual


def test_bounds_and_intervals_stand_apart(ledger: Path) -> None:
    """Of three model programs one passes, one fails, one is open: 1/3, at most 2/3. One problem gives no interval."""
    actual = replay(ledger)
    (_, model) = actual["estimates"]
    assert (model["passed"], model["failed"], model["undecided"]) == (1, 1, 1)
    assert (model["value"], model["upper_bound"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert model["interval"] is None
    assert actual["undecided"] == [{"model": "model", "reason": "missing tests", "programs": 1}]
    table = well("replay", "--ledger", ledger).out
    header = next(line for line in table.splitlines() if line.startswith("criterion"))
    assert [name for name in ("95% interval", "upper bound, %") if name in header] == ["95% interval", "upper bound, %"]
    assert "reason undecided" in table


def test_the_interval_over_problems_is_reported_with_its_method(tmp_path: Path) -> None:
    """pass@1 of 1 and of 0 on two problems: p 1/2, s^2/P = 1/4, so n_eff = 1; Wilson's interval with t at 1 degree.

    (p + t2/2 +- sqrt(t2 (1/4 + t2/4))) / (1 + t2), t2 = t(0.975; 1)^2. What is undecided stays a bound beside it.
    """
    good = (Program("ref", (10, 10), reference=True), Program("tried", (5, 5), model="model"))
    bad = (good[0], dataclasses.replace(good[1], outcomes={0: "wrong_answer"}))
    parts = [list(campaign_of(programs, problem=name)) for name, programs in (("one.1", good), ("two.2", bad))]
    opening = [next(fact for fact in part if isinstance(fact, CampaignOpened)) for part in parts]
    both = {
        name: getattr(opening[0], name) + getattr(opening[1], name) for name in ("problems", "programs", "references")
    }
    facts = [fact for part in parts for fact in part if not isinstance(fact, CampaignOpened)]
    append(tmp_path / "lap", [dataclasses.replace(opening[0], **both), *facts])
    model = replay(tmp_path / "lap")["estimates"][1]
    t2 = stats.t.ppf(0.975, 1) ** 2
    ends = [(1 / 2 + t2 / 2 + sign * math.sqrt(t2 * (1 / 4 + t2 / 4))) / (1 + t2) for sign in (-1, 1)]
    assert (model["value"], model["problems"], model["method"]) == (0.5, 2, "wilson")
    assert model["interval"] == pytest.approx(ends)
    assert "(wilson)" in well("replay", "--ledger", tmp_path / "lap").out


def test_the_share_of_tests_within_tau_stands_beside_the_score(ledger: Path) -> None:
    """Model programs on two tests: percentiles 50, 50 | 100 (wrong), 0 | 0, unseen. At most 30: 2 to 3 of 6.

    References, each among the other three: 0, 33.3, 66.7, 100 on both tests: 2 of 8.
    """
    actual = replay(ledger, "--criterion", "per-test-top-30")
    assert actual["within"] == [
        {"model": "human", "least": 2, "most": 2, "tests": 8},
        {"model": "model", "least": 2, "most": 3, "tests": 6},
    ]
    halfway = next(v for v in actual["verdicts"] if "/halfway." in v["program"])
    assert halfway["within"] == [1, 2, 2]
    table = well("replay", "--criterion", "per-test-top-30", "--ledger", ledger).out
    assert [line.split()[-3:] for line in table.splitlines() if line.startswith("per-test-top-30  model")][1:] == [
        ["6", "33.3", "50.0"],
        ["missing", "tests", "1"],
    ]
    assert replay(ledger, "--criterion", "top-30")["within"] == []


def test_a_filter_reports_what_it_leaves_out(tmp_path: Path) -> None:
    """Means of the references 25 and 600 ms: `pre-0.5s` keeps one test of two; `pre-2s` none: the problem leaves."""
    slow = [Program(f"ref{ms}", (ms, 575 + ms), reference=True) for ms in (10, 20, 30, 40)]
    make_campaign(tmp_path / "lap", slow)
    some = replay(tmp_path / "lap", "--criterion", "pre-0.5s")
    assert some["filter"] == {"tests": 2, "kept": 1, "undecided": 0, "problems": 1, "excluded": []}
    none = replay(tmp_path / "lap", "--criterion", "pre-2s")
    assert none["filter"] == {"tests": 2, "kept": 0, "undecided": 0, "problems": 1, "excluded": [STEPS]}
    assert (none["estimates"][0]["excluded"], none["estimates"][0]["problems"]) == (1, 0)
    table = well("replay", "--criterion", "pre-2s", "--ledger", tmp_path / "lap").out
    assert f"keeps 0 of 2 optimization tests; 1 of 1 problems excluded: {STEPS}" in table
    assert "nan" not in table


def test_a_limit_past_what_was_run_is_shown(tmp_path: Path) -> None:
    """Killed at 10 s and judged at 20 s: undecided, one run of one candidate, and the executed cap is named."""
    make_campaign(tmp_path / "lap", (*REFERENCES, KILLED))
    done = well("replay", "--timeout", "20s", "--ledger", tmp_path / "lap")
    assert "exceeds the executed limit (10000 ms): 1 run of 1 undecided candidate" in done.err
    actual = replay(tmp_path / "lap", "--timeout", "20s")
    assert actual["beyond"] == {"runs": 1, "programs": 1}
    assert [row["reason"] for row in actual["undecided"]] == ["censored: killed below the judged limit"]
    assert replay(tmp_path / "lap", "--timeout", "9s")["beyond"] == {"runs": 0, "programs": 0}


def with_memory(facts: list, peaks: dict) -> list:
    """The facts with the peak memory of some programs, in bytes."""
    return [
        dataclasses.replace(fact, peak_memory_bytes=peaks[fact.program_id])
        if isinstance(fact, TimingMeasured) and fact.program_id in peaks
        else fact
        for fact in facts
    ]


def campaign_of(programs: tuple, *, problem: str = STEPS) -> list:
    """The facts of a whole campaign over one problem."""
    facts = [*problem_facts(problem, programs, 2), *campaign_facts("nightly", problem, programs)]
    return [*facts, *(fact for program in programs for fact in run_facts("nightly", problem, program))]


def test_memory_is_reported_in_bytes(tmp_path: Path) -> None:
    """Peaks of 100 to 400 bytes, and 350 in question, tau 50: rank 6 of 8 on both tests, q 3/4.

    199 bytes on one test are rank 2 of 8 there, and q (2 + 6)/16: 151 bytes less flip it; 200 would tie, 9/16.
    Nothing that is printed under the clock `memory` speaks of ms, even with a limit that a killed run left open.
    """
    programs = (*REFERENCES, Program("asked", (5, 5), model="model"), KILLED)
    peaks = {program_id(STEPS, p.name): (i + 1) * 100 for i, p in enumerate(REFERENCES)}
    peaks |= {program_id(STEPS, "asked"): 350, program_id(STEPS, "killed"): 50}
    append(tmp_path / "lap", with_memory(campaign_of(programs), peaks))
    memory = ("--clock", "memory", "--ledger", tmp_path / "lap")
    seen = well("why", "asked", "--criterion", "per-test-top-50", *memory)
    assert " ms" not in seen.out
    assert "(350 bytes)" in seen.out
    (actual,) = well("why", "asked", "--criterion", "per-test-top-50", *memory, "--json").json["explanations"]
    assert (actual["deciding_test_bytes"], actual["q_lo"], actual["change_bytes"]) == (350, 0.75, -151)
    assert actual["note"].startswith("151 bytes less on ")
    assert "deciding_test_ns" not in actual
    relative = ("--criterion", "relative-p50", "--set", "limit_factor=4")
    done = well("replay", *relative, *memory)
    assert "1 run of 1 undecided candidate was killed below it" in done.err
    assert " ms" not in done.out + done.err
    assert replay(tmp_path / "lap", *relative, "--clock", "memory")["unit"] == "bytes"


STRICT = ("replay", "--criterion", "per-test-top-30", "--name", "strict", "--reason", "the stricter gate")


def test_a_preview_stores_nothing(ledger: Path) -> None:
    """Without a terminal and without --store nothing is stored, and the way to store it is told."""
    done = well(*STRICT, "--ledger", ledger)
    assert "preview: nothing was stored; the same command with --store stores it" in done.err
    assert "the stricter gate" in done.out
    assert well("replay", "--list", "--ledger", ledger, "--json").json["replays"] == []
    assert well(*STRICT, "--preview", "--ledger", ledger, "--json").json["replay"]["stored"] is False
    assert sql(ledger, "SELECT count(*) FROM epoch") == [[1]]  # no producer was started


def test_a_named_replay_is_an_event_with_all_it_depends_on(ledger: Path) -> None:
    """Cut, criterion, versions, table and verdicts lie in the ledger; its id is another for another question."""
    cut = well("replay", "--ledger", ledger, "--json").json["cut"]
    actual = well(*STRICT, "--store", "--ledger", ledger, "--json").json
    stored = actual["replay"]
    assert (stored["stored"], stored["name"], stored["reason"]) == (True, "strict", "the stricter gate")
    assert (stored["cut"], stored["criterion_hash"]) == (cut, actual["criteria"][0]["hash"])
    (row,) = well("replay", "--list", "--ledger", ledger, "--json").json["replays"]
    result = row.pop("result")
    assert row == {name: stored[name] for name in row}
    assert json.loads(result)["estimates"] == actual["criteria"][0]["estimates"]
    assert sql(ledger, "SELECT name FROM criterion") == [["per-test-top-30"]]
    held = stored_json(ledger, row["verdicts_blob"])
    assert [item["problem"] for item in held["problems"]] == [STEPS]
    seen = {
        v["program"]: {"pass": 1, "fail": 0, "undecided": -1}[v["status"]] for v in actual["criteria"][0]["verdicts"]
    }
    assert dict(zip(held["problems"][0]["programs"], held["problems"][0]["status"], strict=True)) == seen
    twin = well("replay", "--criterion", "top-30", "--name", "x", "--reason", "y", "--ledger", ledger, "--json").json
    assert twin["replay"]["replay_id"] != stored["replay_id"]


def stored_json(root: Path, digest: str) -> dict:
    """A blob as JSON."""
    ledger = open_ledger(root)
    try:
        return json.loads(ledger.blobs.get(digest))
    finally:
        ledger.close()


def test_an_id_is_of_the_question_and_its_evidence(ledger: Path) -> None:
    """The same question under another name, at a later cut: the same id, so it is not stored twice. k is a question."""
    first = well(*STRICT, "--store", "--ledger", ledger, "--json").json["replay"]
    again = lap(
        "replay", "--criterion", "per-test-top-30", "--name", "b", "--reason", "c", "--store", "--ledger", ledger
    )
    assert (again.code, again.out) == (2, "")
    assert f"stored already as 'strict' ({first['replay_id'][:12]})" in again.err
    taken = lap("replay", "--criterion", "top-50", "--name", "strict", "--reason", "c", "--store", "--ledger", ledger)
    assert taken.code == 2
    assert "a replay 'strict' is stored already" in taken.err
    deeper = well(*STRICT[:4], "wider", *STRICT[5:], "--k", "2", "--ledger", ledger, "--json").json["replay"]
    assert deeper["replay_id"] != first["replay_id"]
    assert deeper["evidence_digest"] == first["evidence_digest"]


def test_flips_against_the_latest_or_a_named_earlier_one(ledger: Path) -> None:
    """Pure correctness passes the four references and `middle`; per-test top 30 only ref10 (0 <= 30): four flips."""
    base = ("replay", "--criterion", "correct", "--name", "base", "--reason", "all that is right")
    first = well(*base, "--store", "--ledger", ledger, "--json").json["replay"]
    assert (first["flipped"], first["against"], first["flips"]) == (None, None, None)
    second = well(*STRICT, "--store", "--ledger", ledger, "--json").json["replay"]
    assert (second["flipped"], second["against"]) == (4, first["replay_id"])
    assert second["tally"] == [
        {"model": "human", "kind": "pass -> fail", "count": 3},
        {"model": "model", "kind": "pass -> fail", "count": 1},
    ]
    names = [flip["program"].split("/")[1].split(".")[0] for flip in second["flips"]]
    assert sorted(names) == ["middle", "ref20", "ref30", "ref40"]
    assert stored_json(ledger, second["flips_blob"]) == second["flips"]
    third = ("replay", "--criterion", "top-50", "--name", "half", "--reason", "between")
    latest = well(*third, "--ledger", ledger, "--json").json["replay"]
    assert latest["against"] == second["replay_id"]
    named = well(*third, "--previous", "base", "--ledger", ledger, "--json").json["replay"]
    assert named["against"] == first["replay_id"]
    # q of ref10 .. ref40 among the other three: 1/6, 1/3, 2/3, 5/6; middle 1/2: ref30 and ref40 are beyond one half
    assert [flip["program"].split("/")[1].split(".")[0] for flip in named["flips"]] == ["ref30", "ref40"]
    shown = well(*third, "--previous", "base", "--flips", "--ledger", ledger).out
    assert "base -> half: 2 verdicts flipped" in shown
    listed = well("replay", "--list", "--ledger", ledger).out
    assert [line.split()[1] for line in listed.splitlines()[1:3]] == ["base", "strict"]


def test_a_terminal_is_requested(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the question is put, and only a yes stores."""
    for text, count in (("n", 0), ("y", 1)):
        ours, theirs = pty.openpty()
        os.write(ours, f"{text}\n".encode())
        with os.fdopen(theirs) as terminal:
            monkeypatch.setattr("sys.stdin", terminal)
            done = well(*STRICT, "--ledger", ledger)
        os.close(ours)
        assert "Store it?" in done.err
        assert len(well("replay", "--list", "--ledger", ledger, "--json").json["replays"]) == count


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--name", "a"), "--reason TEXT"),
        (("--reason", "b"), "give it a name with --name"),
        (("--store",), "give it a name with --name"),
        (("--name", " ", "--reason", "b"), "one line of text"),
        (("--name", "a\nb", "--reason", "b"), "one line of text"),
        (("--name", "a" * 301, "--reason", "b"), "--name: 301 characters, above the limit of 300"),
        (("--name", "a", "--reason", "b" * 301), "--reason: 301 characters, above the limit of 300"),
        (("--name", "a", "--reason", "b", "--tau", "1", "--tau", "2"), "give one --tau"),
        (("--name", "a", "--reason", "b", "--previous", "none"), "no replay 'none'"),
        (
            ("--name", "a", "--reason", "b", "--against", "top-30"),
            "a named replay has one criterion: give one --tau and no --against",
        ),
        (("--name", "a", "--reason", "b", "--model", "human"), "judges the programs of every model; omit --model"),
        (("--previous", "a"), "--previous is about a named replay; give it a name with --name"),
    ],
)
def test_a_naming_that_does_not_fit_is_refused(ledger: Path, args: tuple, message: str) -> None:
    """One line, exit code 2, nothing stored."""
    done = lap("replay", *args, "--ledger", ledger)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err


def test_continuous_rewards_are_summed_up(tmp_path: Path) -> None:
    """q of the references 1/6, 1/3, 2/3, 5/6 and of middle 1/2: rewards 1 - 2q are 2/3, 1/3, -1/3, -2/3 and 0."""
    make_campaign(tmp_path / "lap", (*REFERENCES, MODELS[0]))
    args = ("reward", "--criterion", "top-30", "--set", "reward=collapsed", "--set", "shape=continuous", "--ledger")
    actual = well(*args, tmp_path / "lap", "--json").json
    assert sorted(r["value"] for r in actual["rewards"]) == pytest.approx([-2 / 3, -1 / 3, 0, 1 / 3, 2 / 3])
    assert actual["summary"] == {
        "mean": pytest.approx(0, abs=1e-12),
        "lowest": pytest.approx(-2 / 3),
        "25%": pytest.approx(-1 / 3),
        "median": 0,
        "75%": pytest.approx(1 / 3),
        "highest": pytest.approx(2 / 3),
    }
    assert actual["histogram"] == [0, 1, 0, 1, 0, 1, 1, 0, 1, 0]  # bins of 0.2 from -1
    make_campaign(tmp_path / "shown", (*REFERENCES, MODELS[0]))
    table = well(*args, tmp_path / "shown").out
    assert [line.split()[1:4] for line in table.splitlines() if line.startswith(STEPS)] == [["5", "0", "0"]]
    assert "median" in table
    assert "+0.333" in table
    make_campaign(tmp_path / "binary", (*REFERENCES, MODELS[0]))
    plain = well("reward", "--criterion", "top-50", "--ledger", tmp_path / "binary").out
    assert [line.split()[1:] for line in plain.splitlines() if line.startswith(STEPS)] == [["5", "3", "2"]]


def rollouts(groups: dict) -> list:
    """Groups of one training run on STEPS in their order, each with its rollouts."""
    facts = []
    for group, names in groups.items():
        opening = {"group_id": group, "training_id": "t", "problem_id": STEPS, "policy": 0}
        facts.append(GroupOpened(**opening, size=len(names), prompt_blob=blob_digest(b"prompt")))
        facts += [
            RolloutSampled(
                rollout_id=f"r-{name}",
                group_id=group,
                problem_id=STEPS,
                ordinal=location,
                policy=0,
                prompt_tokens=1,
                completion_tokens=1,
                completion_blob=blob_digest(name.encode()),
                log_probabilities_blob=None,
                finish_reason="stop",
                seed=None,
                temperature=1.0,
            )
            for location, name in enumerate(names)
        ]
    return facts


def test_multitask_alternates_by_groups_of_rollouts(tmp_path: Path) -> None:
    """Two groups, each a fast wrong and a slow right program: one group earns c (-1, +1), the other e (+1, -1).

    References belong to no group: they are told, and get no reward.
    """
    names = {f"{kind}{i}": ms for i in (1, 2) for kind, ms in (("fast", 5), ("slow", 45))}
    wrong = {0: "wrong_answer"}
    candidates = [
        Program(name, (ms, ms), model="model", outcomes=wrong if name.startswith("fast") else {})
        for name, ms in names.items()
    ]
    facts = [
        dataclasses.replace(fact, rollout_id=f"r-{fact.name.removesuffix('.py')}")
        if isinstance(fact, ProgramAdded) and fact.model == "model"
        else fact
        for fact in campaign_of((*REFERENCES, *candidates))
    ]
    groups = rollouts({"g1": ("fast1", "slow1"), "g2": ("fast2", "slow2")})
    append(tmp_path / "lap", [*groups, *facts])
    done = well("reward", "--criterion", "multitask", "--ledger", tmp_path / "lap", "--json")
    assert "4 of 8 programs belong to no group of rollouts; their reward stays undecided" in done.err
    values = {r["program_id"].split("/")[1].split(".")[0]: r["value"] for r in done.json["rewards"]}
    pairs = [(values[f"fast{i}"], values[f"slow{i}"]) for i in (1, 2)]
    assert sorted(pairs) == [(-1, 1), (1, -1)]
    assert done.json["waiting"] == 4
    assert well("reward", "--criterion", "multitask", "--ledger", tmp_path / "lap", "--json").json["held"] == 4


CLASS = b"class Solution:\n    def solve(self, n):\n        return n\n"
BARE = b"def solve(n):\n    return n\n"


def test_the_interface_gate_reads_what_references_share(tmp_path: Path) -> None:
    """All references define Solution.solve(self, n): a candidate that strips the class fails the gate, and only so."""
    programs = (*REFERENCES, Program("kept", (5, 5), model="model"), Program("stripped", (5, 5), model="model"))
    facts = []
    for fact in campaign_of(programs):
        if isinstance(fact, ProgramAdded):
            source = (BARE if fact.name == "stripped.py" else CLASS) + f"# {fact.name}\n".encode()
            facts.append(dataclasses.replace(fact, source_blob=blob_digest(source)))
        else:
            facts.append(fact)
    append(tmp_path / "lap", facts)
    put(tmp_path / "lap", [(BARE if p.name == "stripped" else CLASS) + f"# {p.name}.py\n".encode() for p in programs])
    actual = replay(tmp_path / "lap", "--set", "interface=required")
    status = {v["program"].split("/")[1].split(".")[0]: (v["status"], v["reason"]) for v in actual["verdicts"]}
    assert status.pop("stripped") == ("fail", "interface not kept")
    assert set(status.values()) == {("pass", "correct")}
    assert {v["status"] for v in replay(tmp_path / "lap")["verdicts"]} == {"pass"}
    seen = well("why", "stripped", "--set", "interface=required", "--ledger", tmp_path / "lap", "--json").json
    assert seen["explanations"][0]["reason"] == "interface not kept"


def put(root: Path, sources: list) -> None:
    """Stores sources as blobs."""
    ledger = open_ledger(root)
    try:
        blobs: Blobs = ledger.blobs
        blobs.put_many(sources)
    finally:
        ledger.close()


def test_nothing_names_milliseconds_in_ns(ledger: Path) -> None:
    """The unit stands in the JSON beside the verdicts, whatever the clock."""
    assert replay(ledger)["unit"] == "ns"
    assert MS == 1_000_000


PAGE = Path(__file__).parents[2] / "docs" / "replaying.md"


def test_the_page_s_commands_run_as_they_stand_there(tmp_path: Path) -> None:
    """In their order, on one ledger: each ends well, and two of them store."""
    make_campaign(tmp_path / ".lap", (*REFERENCES, MODELS[0]))
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert len(lines) == 13
    for program, *args in lines:
        assert program == "lap"
        well(*args, cwd=tmp_path)
    names = [row["name"] for row in well("replay", "--list", "--json", cwd=tmp_path).json["replays"]]
    assert names == ["base", "strict"]
