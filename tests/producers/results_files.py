"""Small result files in the formats of other tools, made by hand, and what a ledger then holds."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.lap import sql, well

SOURCE = "class Solution:\n    pass\n"


def write(path: Path, value: Any) -> Path:
    """A JSON file."""
    path.write_text(json.dumps(value))
    return path


def mercury_sample(
    result: str = "passed", runtime: float = 0.5, index: int = 0, *, runtimes: Sequence[float] = (0.2, 0.4, 1.0)
) -> dict[str, Any]:
    """A sample as Mercury stores it, graded by formula B."""
    spread = max(runtimes) - min(runtimes)
    score = max((max(runtimes) - runtime) / spread, 0) if result == "passed" else 0.0
    return {
        "slug_name": "two-sum",
        "status": {"result": result, "runtime": runtime, "index": index},
        "solution": f"{SOURCE}# {index}\n",
        "runtimes": list(runtimes),
        "beyond_p": score,
    }


def mercury_session(**problems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A session of some problems, whose names may hold underscores for dashes."""
    return {name.replace("_", "-"): list(samples) for name, samples in problems.items()}


def question(
    number: str, *graded: bool, notes: Sequence[Mapping[str, Any] | None] = (), codes: Sequence[str] = ()
) -> dict[str, Any]:
    """A question as LiveCodeBench stores it; a passing sample took 0.25 s unless its note says something else."""
    plain = [{"execution time": 0.25} if right else {"error_code": -2, "error_message": "Wrong"} for right in graded]
    return {
        "question_title": f"Question {number}",
        "question_content": "Add the numbers.",
        "platform": "atcoder",
        "question_id": number,
        "contest_id": "abc301",
        "contest_date": "2024-01-02T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "output_list": [],
        "code_list": list(codes) or [f"print({number!r}, {location})" for location in range(len(graded))],
        "graded_list": list(graded),
        "pass@1": sum(graded) / len(graded),
        "metadata": [json.dumps(note) for note in (notes or plain)],
    }


def benchmark(name: str, *runs: Sequence[float], **metadata: Any) -> dict[str, Any]:
    """A benchmark as pyperf stores it: a calibrating run, then processes with one warm-up twice as slow."""
    measured = [
        {"metadata": {"date": f"2026-01-0{n} 10:00:00", "mem_max_rss": 1000 * n}, "warmups": [[1, 2 * run[0]]]}
        | {"values": list(run)}
        for n, run in enumerate(runs, 1)
    ]
    return {"metadata": {"name": name, **metadata}, "runs": [{"warmups": [[1, 9.0], [2, 8.0]]}, *measured]}


def suite(*benchmarks: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    """A file of pyperf."""
    shared = {"hostname": "machine", "perf_version": "2.5.0", "unit": "second", **metadata}
    return {"version": "1.0", "metadata": shared, "benchmarks": list(benchmarks)}


def perf_task(
    costs: Sequence[float | None], failed: int, references: Sequence[tuple[float, float | None]], *, untried: int = 0
) -> Any:
    """A task as EvalPerf 0.3.1 stores it: samples with these instruction counts (None: the profile broke), failed ones.

    `untried` more passed and were not profiled. Each profiled one is scored by looking it up among the references'
    (share, count), from the fastest on; a broken one scores 0.
    """
    samples = [_perf_sample(n, passed=True, profiled=True) for n in range(len(costs))]
    for sample, cost in zip(samples, costs, strict=True):
        sample |= {} if cost is None else {"_num_cpu_instructions": cost}
    for sample in samples:
        cost = sample.get("_num_cpu_instructions")
        matched = [
            (share, 100 * (location + 1) / len(references))
            for location, (share, count) in enumerate(references)
            if cost is not None and count is not None and cost <= count
        ]
        sample["dps"], sample["dps_norm"] = matched[-1] if matched else (0.0, 0.0)
    scored = list(samples)
    samples += [_perf_sample(len(costs) + n, passed=True) for n in range(untried)]
    samples += [_perf_sample(1000 + n, passed=False) for n in range(failed)]
    return {
        "task_id": "HumanEval/1",
        "n_profiled": len(scored) or None,
        "results": samples,
        "ref": [
            {"solution": f"def f(): pass  # {n}", "score": share, "_num_cpu_instructions": count}
            for n, (share, count) in enumerate(references)
        ],
        "dps": sum(item["dps"] for item in scored) / len(scored) if scored else None,
        "dps_norm": sum(item["dps_norm"] for item in scored) / len(scored) if scored else None,
        "pass@1": 100 * (len(costs) + untried) / len(samples),
    }


def _perf_sample(number: int, *, passed: bool, profiled: bool = False) -> dict[str, Any]:
    seen = {"matching_cluster_idx": -1 if profiled else None, "dps": None, "dps_norm": None}
    return {"solution": f"def f(): return {number}", "pass": passed, "profiled": profiled, **seen}


def contest(name: str, **changes: Any) -> dict[str, Any]:
    """A row of Code Contests: one test of each kind, two right Python 3 programs, one wrong, one in C++."""
    return {
        "name": name,
        "description": "Print the double.",
        "public_tests": {"input": ["1\n"], "output": ["2\n"]},
        "private_tests": {"input": ["2\n"], "output": ["4\n"]},
        "generated_tests": {"input": ["3\n", "4\n"], "output": ["6\n", "8\n"]},
        "source": 2,
        "difficulty": 7,
        "solutions": {"language": [3, 3, 2], "solution": ["print(2*int(input()))", "x=int(input());print(x+x)", "int"]},
        "incorrect_solutions": {"language": [3], "solution": ["print(input())"]},
        "cf_contest_id": 1575,
        "cf_index": "A",
        "time_limit": {"seconds": 2, "nanos": 500_000_000},
        "input_file": "",
        **changes,
    }


def new_ledger(folder: Path) -> Path:
    """An empty ledger."""
    well("ledger", "init", "--ledger", folder / "ledger")
    return folder / "ledger"


def imported(ledger: Path, form: str, *args: object) -> list[dict[str, Any]]:
    """What `lap import FORM` says of each file."""
    actual: list[dict[str, Any]] = well("import", form, *args, "--ledger", ledger, "--json").json["imported"]
    return actual


def outcomes(ledger: Path, campaign: str) -> dict[str, str]:
    """Program name -> outcome, in a campaign."""
    query = "SELECT p.name, e.outcome FROM execution e JOIN program p USING (program_id) WHERE e.campaign_id = '{}'"
    return dict(sql(ledger, query.format(campaign)))
