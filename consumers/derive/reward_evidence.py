"""What a reward depends on: the frames of every event behind it, their blobs, and its evidence in words.

For bundles that are checked without a ledger; `consumers.derive.reward_audit` recomputes rewards.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from lapledger.consumers.derive.reward_audit import Trace
from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.proof.bundles.reward_bundle import Evidence, RewardDependencies
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger

_RUNS = """
WITH t AS (SELECT test_id, (row_number() OVER (ORDER BY ordinal, test_id) - 1)::INT AS t
           FROM test WHERE problem_id = $problem)
SELECT e.program_id, t.t, e.outcome, e.attempt_id, e.timings_digest
FROM execution e JOIN t USING (test_id)
WHERE e.accepted AND e.campaign_id = $campaign AND e.problem_id = $problem AND list_contains($programs, e.program_id)
ORDER BY e.program_id, t.t
"""
_TESTS = """
SELECT test_id, original, correctness, optimization, input_blob, answer_blob
FROM test WHERE problem_id = $problem ORDER BY ordinal, test_id
"""
_EVENTS = {
    "reward_assigned": "list_contains($ids, reward_id)",
    "criterion_declared": "list_contains($ids, criterion_hash)",
    "calibration_fitted": "list_contains($ids, calibration_id)",
    "campaign_opened": "list_contains($ids, campaign_id)",
    "worker_started": "list_contains($ids, campaign_id)",
    "problem_added": "list_contains($ids, problem_id)",
    "test_added": "list_contains($ids, problem_id)",
    "filter_decided": "list_contains($ids, problem_id)",
    "program_added": "list_contains($ids, program_id)",
    "execution_shared": "campaign_id = $campaign AND list_contains($ids, program_id)",
    "execution_finished": "list_contains($ids, attempt_id)",
    "timing_measured": "list_contains($ids, attempt_id)",
    "annotation_made": "list_contains($ids, subject_id)",
}
"""The events of each type that a reward may rest on, by the ids that it leads to."""


_TEXTS = ("input_blob", "answer_blob")
"""What a test names that lies in the blob store, where it is known."""


def dependencies_of(ledger: Ledger, questions: Questions, reward_trace: Trace) -> RewardDependencies:
    """All that a traced reward depends on."""
    reward = reward_trace.reward
    then = Questions(ledger, Cut.parse(reward["cut"]))
    try:
        tests = then.rows(_TESTS, problem=reward["problem_id"])
        programs = list(_programs(then, reward_trace))
    finally:
        then.close()
    attempts = [cell[2] for program in programs for cell in program[2:]]
    ids = [reward["reward_id"], reward["criterion_hash"], reward["problem_id"], *_campaigns(reward_trace), *attempts]
    ids += [reward["calibration_id"] or "", reward_trace.executed, *(program[0] for program in programs)]
    evidence = Evidence(reward["problem_id"], [list(test.values())[:4] for test in tests], programs)
    frames: dict[tuple[str, int], set[int]] = {}
    for table, condition in _EVENTS.items():
        query = f"SELECT DISTINCT _stream, _partition, _admission FROM {table} WHERE {condition}"  # noqa: S608
        named = {"campaign": reward["campaign_id"]} if "$campaign" in condition else {}
        for row in questions.rows(query, ids=ids, **named):
            frames.setdefault((row["_stream"], row["_partition"]), set()).add(row["_admission"])
    return RewardDependencies(
        reward=reward["reward_id"],
        frames=frames,
        blobs={test[name] for test in tests for name in _TEXTS if test[name]} | {row[1] for row in programs if row[1]},
        evidence=evidence if _digest(evidence) == reward["evidence_digest"] else None,
        trace=asdict(reward_trace),
    )


def _campaigns(reward_trace: Trace) -> list[str]:
    """The rewarded campaign, then the one that a calibration maps from."""
    source = [reward_trace.calibration["source_campaign"]] if reward_trace.calibration else []
    return [reward_trace.reward["campaign_id"], *source]


def _programs(then: Questions, reward_trace: Trace) -> Iterator[list[Any]]:
    """The pool, then the rewarded program, each with its source and its runs, in its campaign or the mapped one."""
    problem, rewarded = reward_trace.reward["problem_id"], reward_trace.reward["program_id"]
    pool = sorted(reward_trace.pool)
    members = then.rows(
        "SELECT programs FROM campaign WHERE campaign_id = $campaign", campaign=_campaigns(reward_trace)[0]
    )
    own_programs = {program for row in members for program in row["programs"]}
    sources = then.rows("SELECT program_id, source_blob FROM program WHERE problem_id = $problem", problem=problem)
    blobs = {row["program_id"]: row["source_blob"] for row in sources}
    runs: dict[tuple[bool, str], list[list[str]]] = {}
    for position, campaign in enumerate(_campaigns(reward_trace)):
        rows = then.rows(_RUNS, campaign=campaign, problem=problem, programs=[*pool, reward_trace.executed])
        for row in rows:
            runs.setdefault((position == 0, row["program_id"]), []).append(_cell(row))
    for program, executed in (*((reference, reference) for reference in pool), (rewarded, reward_trace.executed)):
        yield [program, blobs[program], *runs.get((executed in own_programs, executed), [])]


def _cell(row: Mapping[str, Any]) -> list[str]:
    return [str(row["t"]), row["outcome"], row["attempt_id"], row["timings_digest"]]


def _digest(evidence: Evidence) -> str:
    """The digest of the evidence as the scoring engine of this release makes it (`replay.loading.evidence`)."""
    tests = (f"{int(o)}{int(c)}{int(r)} {test}" for test, o, c, r in evidence.tests)
    rows = [
        sha256_fields(program, source or "", *(field for cell in cells for field in cell))
        for program, source, *cells in evidence.programs
    ]
    return sha256_fields("evidence", evidence.problem, sha256_fields(*tests), len(rows) - 1, *rows)
