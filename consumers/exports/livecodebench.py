"""LiveCodeBench's `*_eval_all.json`: one row a problem, with every sample of one model and whether it was right.

`graded_list` holds true and false as LiveCodeBench writes them, and null where the verdict is undecided: a reader that
adds the list up then stops, where a false would quietly count as a wrong program.
"""

import json
from collections.abc import Sequence
from typing import Any

from consumers.exports.gathered import Gathered, Sample
from replay.estimators import ABSENT, one_value
from replay.judging.gates import Status
from replay.measurements import Outcome

CODES: dict[Outcome, bool | int | None] = {
    Outcome.MISSING: None,
    Outcome.OK: True,
    Outcome.WRONG_ANSWER: -2,
    Outcome.TIME_LIMIT: -3,
    Outcome.RUN_TIME_ERROR: -4,
    Outcome.MEMORY_LIMIT: -4,
    Outcome.OUTPUT_LIMIT: -4,
}
"""LiveCodeBench's code of each test: true passed, -2 wrong answer, -3 time, -4 error; null where nothing was run."""
MESSAGES = {-2: "Wrong Answer", -3: "Time Limit Exceeded", -4: "Runtime Error"}
GRADED = {Status.PASS: True, Status.FAIL: False, Status.UNDECIDED: None}


def livecodebench(
    gathered: Gathered, by_problem: Sequence[tuple[str, list[Sample]]], statements: dict[str, str]
) -> list[dict[str, Any]]:
    """The rows of the file, problems in the order of their ids; `pass@1` is null while a sample is undecided.

    What a ledger does not know (platform, contest, date, starter code) is empty or null.
    """
    return [_row(gathered, problem, samples, statements.get(problem, "")) for problem, samples in by_problem if samples]


def _row(gathered: Gathered, problem: str, samples: Sequence[Sample], statement: str) -> dict[str, Any]:
    stored = gathered.problems[problem]
    graded = [GRADED[sample.status] for sample in samples]
    return {
        "question_title": stored["name"],
        "question_content": statement,
        "platform": stored["source"],
        "question_id": problem,
        "contest_id": "",
        "contest_date": None,
        "starter_code": "",
        "difficulty": stored["tier"] or "",
        "output_list": [f"```python\n{sample.source}\n```" for sample in samples],
        "code_list": [sample.source for sample in samples],
        "graded_list": graded,
        "pass@1": None if None in graded else sum(map(bool, graded)) / len(graded),
        "metadata": [_metadata(sample) for sample in samples],
        "lapledger": gathered.about(),
    }


def _metadata(sample: Sample) -> str:
    """One sample in JSON: its whole execution time in seconds, or the code of its first failure; all codes; why."""
    codes = [CODES[Outcome(int(code))] for code in sample.measured.outcome[sample.row]]
    failure = next((code for code in codes if code is not None and code is not True), None)
    words: dict[str, Any] = {}
    if failure is not None:
        words |= {"error_code": failure, "error_message": MESSAGES[failure]}
    elif (seconds := _seconds(sample)) is not None:
        words["execution time"] = seconds
    words |= {"results": codes, "program_id": sample.program, "reason": sample.judged.reason[sample.row]}
    return json.dumps(words, ensure_ascii=False)


def _seconds(sample: Sample) -> float | None:
    """The sum over the tests of the median wall time; None where a test has none."""
    medians = one_value(sample.measured.wall_ns[sample.row], "median")
    return None if not medians.size or bool((medians == ABSENT).any()) else int(medians.sum()) / 1e9
