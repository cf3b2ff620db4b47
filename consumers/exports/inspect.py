"""An Inspect log in its JSON form (version 2), which `inspect view` and `inspect_ai.log.read_eval_log` read.

One epoch a sample of a problem, one scorer: 1 passed, 0 failed; an undecided program has no score, and the reason in
its metadata. No model was called by Inspect, so a sample holds the prompt as known, the program, and nothing else.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lapledger.consumers.exports.judged_export import STATUS_NAMES, JudgedExport, Sample
from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.replay.judging.gates import Status
from lapledger.replay.measurements import Floats, Outcome

SCORER = "lapledger"


def accuracies(by_problem: Sequence[tuple[str, list[Sample]]]) -> Floats:
    """The share of each problem's decided samples that passed [problems]; nan where none is decided."""

    def share(samples: Sequence[Sample]) -> float:
        decided = [sample.status for sample in samples if sample.status != Status.UNDECIDED]
        return decided.count(Status.PASS) / len(decided) if decided else math.nan

    return np.array([share(samples) for _, samples in by_problem if samples], dtype=np.float64)


def inspect_log(
    export: JudgedExport,
    by_problem: Sequence[tuple[str, list[Sample]]],
    *,
    model: str,
    statements: Mapping[str, str],
    accuracy: Floats,
) -> dict[str, Any]:
    """The log. `accuracy` is the share of each problem's decided samples that passed [problems], nan without any.

    Ids hash cut, campaign, criterion and model: the same answer is the same log. Source of the shape: inspect_ai 0.3,
    `EvalLog`.
    """
    about = export.about()
    identity = sha256_fields("inspect", about["cut"], about["campaign"], about["criterion_hash"], model)[:22]
    shown = [(problem, samples) for problem, samples in by_problem if samples]
    rows = [
        _sample(sample, epoch, model=model, statement=statements.get(problem, ""))
        for problem, samples in shown
        for epoch, sample in enumerate(samples, 1)
    ]
    created = export.finished.replace("Z", "+00:00") or "1970-01-01T00:00:00+00:00"
    return {
        "version": 2,
        "status": "success",
        "eval": _spec(about, shown, identity=identity, created=created, model=model),
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": _results(rows, accuracy),
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
        "samples": rows,
    }


def _spec(
    about: Mapping[str, Any],
    shown: Sequence[tuple[str, list[Sample]]],
    *,
    identity: str,
    created: str,
    model: str,
) -> dict[str, Any]:
    epochs = max((len(samples) for _, samples in shown), default=1)
    names = [problem for problem, _ in shown]
    return {
        "eval_id": identity,
        "run_id": identity,
        "created": created,
        "task": f"lapledger/{about['campaign']}",
        "task_id": identity,
        "task_version": 0,
        "task_attribs": {},
        "task_args": {},
        "dataset": {"name": about["campaign"], "samples": len(names), "sample_ids": names},
        "model": f"lapledger/{model}",
        "model_args": {},
        "config": {"epochs": epochs},
        "packages": {},
        "metadata": dict(about),
    }


def _sample(sample: Sample, epoch: int, *, model: str, statement: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"```python\n{sample.source}\n```"}
    outcomes = zip(sample.measurements.tests.ids, sample.measurements.outcome[sample.row], strict=True)
    return {
        "id": sample.problem,
        "epoch": epoch,
        "input": statement,
        "target": "",
        "messages": [{"role": "user", "content": statement}, message],
        "output": {
            "model": f"lapledger/{model}",
            "choices": [{"message": message, "stop_reason": "unknown"}],
            "completion": message["content"],
        },
        "scores": {} if sample.status == Status.UNDECIDED else {SCORER: _score(sample)},
        "metadata": {
            "program_id": sample.program,
            "verdict": STATUS_NAMES[sample.status],
            "reason": sample.verdicts.reason[sample.row],
            "outcomes": {name: Outcome(int(code)).name.lower() for name, code in outcomes},
        },
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }


def _score(sample: Sample) -> dict[str, Any]:
    v, row = sample.verdicts, sample.row
    return {
        "value": int(sample.status == Status.PASS),
        "answer": sample.source,
        "explanation": v.reason[row],
        "metadata": {"q": [int(v.q_lo[row]), int(v.q_hi[row]), int(v.q_den[row])], "references": int(v.pool_size[row])},
    }


def _results(rows: Sequence[Mapping[str, Any]], accuracy: Floats) -> dict[str, Any]:
    scored = sum(bool(row["scores"]) for row in rows)
    known = accuracy[~np.isnan(accuracy)]
    metrics = {"accuracy": {"name": "accuracy", "value": float(known.mean()), "params": {}}} if known.size else {}
    if known.size > 1:
        error = float(known.std(ddof=1)) / known.size**0.5
        metrics["stderr"] = {"name": "stderr", "value": error, "params": {}}
    score = {
        "name": SCORER,
        "scorer": SCORER,
        "scored_samples": scored,
        "unscored_samples": len(rows) - scored,
        "params": {},
        "metrics": metrics,
    }
    return {"total_samples": len(rows), "completed_samples": len(rows), "scores": [score]}
