"""EvalPlus's result file: one model's samples with a `base` and a `plus` status each.

`base` are the problem's original tests alone, `plus` is the verdict under the criterion. Inputs can be megabytes, so
the lists of failed tests name tests where EvalPlus repeats inputs. What is undecided is null, never a failure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lapledger.consumers.exports.judged_export import JudgedExport, Sample
from lapledger.replay.criteria import preset
from lapledger.replay.estimates import pass_at_k
from lapledger.replay.judging.gates import Status, judge
from lapledger.replay.measurements import Bools, Outcome

PASS, FAIL, TIMEOUT = "pass", "fail", "timeout"
KS = (1, 10, 100)
"""The k that EvalPlus reports, where every problem has as many samples."""


def evalplus(export: JudgedExport, by_problem: Sequence[tuple[str, list[Sample]]]) -> dict[str, Any]:
    """The content of `*_eval_results.json`: date, hash, eval and pass_at_k, and where it comes from.

    `date` is the end of the last run, to the minute; `hash` digests the tests' package of each problem. Source of the
    shape: evalplus 0.3.1, `evaluate.py`.
    """
    samples_by_problem = {problem: _problem(samples) for problem, samples in by_problem if samples}
    packages = [str(export.problems[problem]["package_digest"]) for problem in samples_by_problem]
    return {
        "date": export.finished[:16].replace("T", " "),
        "hash": packages[0] if len(packages) == 1 else "+".join(digest[:12] for digest in packages),
        "eval": samples_by_problem,
        "pass_at_k": {
            "base": _pass_at_k(samples_by_problem, ("base_status",)),
            "plus": _pass_at_k(samples_by_problem, ("base_status", "plus_status")),
        },
        "lapledger": export.about(),
    }


def _problem(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    originals = judge(samples[0].measurements, preset("rlvr"))
    return [_row(sample, Status(int(originals.c[sample.row]))) for sample in samples]


def _row(sample: Sample, base: Status) -> dict[str, Any]:
    tests = sample.measurements.tests
    return {
        "task_id": sample.problem,
        "solution": sample.source,
        "base_status": _status(sample, base, tests.original),
        "plus_status": _status(sample, sample.status, ~tests.original),
        "base_fail_tests": _failed(sample, tests.original),
        "plus_fail_tests": _failed(sample, ~tests.original),
        "program_id": sample.program,
        "reason": sample.verdicts.reason[sample.row],
    }


def _status(sample: Sample, status: Status, tests: Bools) -> str | None:
    """`timeout` where every failure among the tests is one; null while undecided."""
    if status == Status.UNDECIDED:
        return None
    if status == Status.PASS:
        return PASS
    outcome = sample.measurements.outcome[sample.row][tests]
    failed = outcome[outcome > Outcome.OK]
    return TIMEOUT if failed.size and bool((failed == Outcome.TIME_LIMIT).all()) else FAIL


def _failed(sample: Sample, tests: Bools) -> list[str]:
    outcome = sample.measurements.outcome[sample.row]
    return [
        name
        for name, code, is_counted in zip(sample.measurements.tests.ids, outcome, tests, strict=True)
        if is_counted and code > 1
    ]


def _pass_at_k(samples_by_problem: Mapping[str, list[dict[str, Any]]], statuses: tuple[str, ...]) -> dict[str, float]:
    """pass@k over problems, for each k that every problem has samples for; what is undecided did not pass."""
    counts = [
        (len(rows), sum(all(row[name] == PASS for name in statuses) for row in rows))
        for rows in samples_by_problem.values()
    ]
    fewest = min((n for n, _ in counts), default=0)
    return {f"pass@{k}": sum(pass_at_k(n, c, k) for n, c in counts) / len(counts) for k in KS if k <= fewest}
