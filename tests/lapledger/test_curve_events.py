"""`lap curve` where the ledger says more: checkpoints from stored rollouts, tiers from fields and from sources."""

from dataclasses import replace
from pathlib import Path

import pytest

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.events import GroupOpened, ProblemAdded, ProgramAdded, RolloutSampled
from lapledger.ledger.store.open_ledger import open_ledger
from tests.support.lap import lap, well
from tests.support.many_ledgers import PROBLEMS, make_many

STEPS = {"run-1k": 100, "run-2k": 900}
LENGTH = dict(zip(PROBLEMS, (5, 50, 20), strict=True))
"""Names added in each reference's source: a program `x + x + ... + x` of n names has 2n - 1 tokens."""


def source(problem: str, name: str) -> bytes:
    """A program of that many names, and a comment that makes it its own."""
    return (" + ".join(["x"] * LENGTH[problem]) + f"  # {name}\n").encode()


def logged(fact):
    """Sources that can be counted; rollouts that made the programs of `run`, whose models then do not say the step."""
    if isinstance(fact, ProgramAdded):
        made = replace(fact, source_blob=blob_digest(source(fact.problem_id, fact.name)))
        if fact.model in STEPS:
            return replace(made, model="policy", rollout_id=f"{fact.problem_id}/{STEPS[fact.model]}/{fact.name}")
        return made
    if isinstance(fact, ProblemAdded):
        return replace(fact, tier=None)
    return fact


def rollouts():
    """The groups and rollouts of one training run, told twice."""
    for problem in PROBLEMS:
        for model, step in STEPS.items():
            yield GroupOpened(
                group_id=f"{problem}/{step}",
                training_id="qwen-rl",
                problem_id=problem,
                policy=step,
                size=4,
                prompt_blob=blob_digest(b"prompt"),
            )
            for i in (*range(4), 0):
                yield RolloutSampled(
                    rollout_id=f"{problem}/{step}/{model}-{i}.py",
                    group_id=f"{problem}/{step}",
                    problem_id=problem,
                    ordinal=i,
                    policy=step,
                    prompt_tokens=1,
                    completion_tokens=1,
                    completion_blob=blob_digest(b"completion"),
                    log_probabilities_blob=None,
                    finish_reason="stop",
                    seed=None,
                    temperature=1.0,
                )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger in `.lap`: rollouts of one run, and every reference's source as a blob."""
    home = tmp_path_factory.mktemp("rollouts")
    make_many(home / ".lap", more=rollouts(), change=logged)
    ledger = open_ledger(home / ".lap")
    try:
        ledger.blobs.put_many(source(problem, f"h{i}.py") for problem in PROBLEMS for i in range(10))
    finally:
        ledger.close()
    return home


def test_checkpoints_from_rollouts(folder: Path) -> None:
    """Policies 100 and 900 sampled what the models run-1k and run-2k did: p_50 is 2/4 and 3/4."""
    result = well("curve", "--tau", "50", "--tiers", "none", "--json", cwd=folder).json["points"]
    assert [(item["run"], item["step"], item["p_tau"], item["programs"]) for item in result] == [
        ("qwen-rl", 100, 50, 12),
        ("qwen-rl", 900, 75, 12),
    ]
    assert (
        well("curve", "--training", "qwen-rl", "--tau", "50", "--tiers", "none", "--json", cwd=folder).json["points"]
        == result
    )
    done = lap("curve", "--training", "other", cwd=folder)
    assert (done.code, "no such run in this campaign; choose one of qwen-rl" in done.err) == (2, True)


def test_tiers_by_tokens(folder: Path) -> None:
    """9, 99 and 39 tokens: one problem in each tercile, the shortest easy; asked for or by default."""
    for args in ((), ("--tiers", "tokens")):
        result = well("curve", "--tau", "50", *args, "--json", cwd=folder).json
        assert result["tiers"] == "tiers: terciles of the references' median token count"
        assert list(dict.fromkeys(item["tier"] for item in result["points"])) == ["all", "easy", "medium", "hard"]
        assert [item["problems"] for item in result["points"]] == [3, 3, 1, 1, 1, 1, 1, 1]


def test_tiers_that_the_problems_came_with(tmp_path: Path) -> None:
    """A stored field goes first: two problems are `div2`, one is `div1`."""
    names = dict(zip(PROBLEMS, ("div2", "div1", "div2"), strict=True))

    def named(fact):
        return replace(fact, tier=names[fact.problem_id]) if isinstance(fact, ProblemAdded) else logged(fact)

    make_many(tmp_path / ".lap", more=rollouts(), change=named)
    for args in ((), ("--tiers", "stored")):
        result = well("curve", "--tau", "100", *args, "--json", cwd=tmp_path).json
        assert result["tiers"] == "tiers as the problems came with"
        sizes = {item["tier"]: item["problems"] for item in result["points"]}
        assert sizes == {"all": 3, "div1": 1, "div2": 2}
