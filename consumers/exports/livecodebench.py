"""LiveCodeBench's `*_eval_all.json`: one row a problem, with every sample of one model and whether it was right.

`graded_list` holds true and false as LiveCodeBench writes them, and null where the verdict is undecided: a reader that
adds the list up then stops, where a false would quietly count as a wrong program. A question that came from such a file
leaves with the file's own words for it: id, platform, contest, date and starter code.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lapledger.consumers.exports.judged_export import JudgedExport, Sample
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.estimators import ABSENT, one_value
from lapledger.replay.judging.gates import Status
from lapledger.replay.measurements import Outcome

CODES: dict[Outcome, bool | int | None] = {
    Outcome.MISSING: None,
    Outcome.OK: True,
    Outcome.WRONG_ANSWER: -2,
    Outcome.TIME_LIMIT: -3,
    Outcome.RUN_TIME_ERROR: -4,
    Outcome.MEMORY_LIMIT: -4,
    Outcome.OUTPUT_LIMIT: -4,
    Outcome.FAILED: False,
}
"""LiveCodeBench's code of each test: true passed, -2 wrong answer, -3 time, -4 error, false where nobody says how it
failed; null where no program was executed."""
MESSAGES = {-2: "Wrong Answer", -3: "Time Limit Exceeded", -4: "Runtime Error"}
GRADED = {Status.PASS: True, Status.FAIL: False, Status.UNDECIDED: None}


def contests(questions: Questions, campaign: str) -> dict[str, Mapping[str, str]]:
    """Problem id -> what the file that a campaign was imported from says of the question, by LiveCodeBench's own keys.

    Empty for a campaign of another origin.
    """
    rows = questions.rows(
        "SELECT source_metadata FROM imported WHERE format = 'livecodebench' AND campaign_id = $id", id=campaign
    )
    return {
        problem: stored_metadata
        for row in rows
        for problem, stored_metadata in json.loads(row["source_metadata"]).get("questions", {}).items()
    }


def livecodebench(
    export: JudgedExport,
    by_problem: Sequence[tuple[str, list[Sample]]],
    *,
    statements: Mapping[str, str],
    stored_metadata: Mapping[str, Mapping[str, str]],
) -> list[dict[str, Any]]:
    """The rows of the file, problems in the order of their ids; `pass@1` is null while a sample is undecided.

    `stored_metadata` comes from `contests`. Without it a question's id is its problem's slug, or its id where two
    problems share one; what a ledger does not know (contest, date, starter code) is empty or null.
    """
    shown = [(problem, samples) for problem, samples in by_problem if samples]
    slugs = Counter(export.problems[problem]["slug"] for problem, _ in shown)
    rows = []
    for problem, samples in shown:
        stored = export.problems[problem]
        name = stored["slug"] if slugs[stored["slug"]] == 1 else problem
        question = {"question_id": name, "platform": stored["source"], **stored_metadata.get(problem, {})}
        rows.append(_row(export, samples, question=question, statement=statements.get(problem, "")))
    return rows


def _row(
    export: JudgedExport, samples: Sequence[Sample], *, question: Mapping[str, str], statement: str
) -> dict[str, Any]:
    stored = export.problems[samples[0].problem]
    graded = [GRADED[sample.status] for sample in samples]
    return {
        "question_title": stored["name"],
        "question_content": statement,
        "platform": question["platform"],
        "question_id": question["question_id"],
        "contest_id": question.get("contest_id", ""),
        "contest_date": question.get("contest_date"),
        "starter_code": question.get("starter_code", ""),
        "difficulty": stored["tier"] or "",
        "output_list": [f"```python\n{sample.source}\n```" for sample in samples],
        "code_list": [sample.source for sample in samples],
        "graded_list": graded,
        "pass@1": None if None in graded else sum(map(bool, graded)) / len(graded),
        "metadata": [_metadata(sample) for sample in samples],
        "lapledger": export.about(),
    }


def _metadata(sample: Sample) -> str:
    """One sample in JSON: its whole execution time in seconds, or the code of its first failure; all codes; why."""
    codes = [CODES[Outcome(int(code))] for code in sample.measurements.outcome[sample.row]]
    failure = next((code for code in codes if code is not None and code is not True), None)
    metadata: dict[str, Any] = {}
    if failure:
        metadata |= {"error_code": failure, "error_message": MESSAGES[failure]}
    elif failure is None and (seconds := _seconds(sample)) is not None:
        metadata["execution time"] = seconds
    metadata |= {"results": codes, "program_id": sample.program, "reason": sample.verdicts.reason[sample.row]}
    return json.dumps(metadata, ensure_ascii=False)


def _seconds(sample: Sample) -> float | None:
    """The sum over the tests of the median wall time; None where a test has none."""
    medians = one_value(sample.measurements.wall_ns[sample.row], "median")
    return None if not medians.size or bool((medians == ABSENT).any()) else int(medians.sum()) / 1e9
