"""Reward functions as TRL and verl call them: a real ledger, the real sandbox, rollouts stored and traceable."""

import ast
import asyncio
import csv
import inspect
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lapledger.consumers.training.completions import Completion
from lapledger.ledger.errors import UserError
from lapledger.ledger.proof.bundles.verifier import reward as reward_verifier
from lapledger.trainers import Rewards, Scoring, trl_rewards, verl_rewards
from lapledger.workflows.execution.run_campaign import alone
from tests.support.lap import lap, sql, well
from tests.support.packages import ACCEPTED, PROGRAMS, WRONG, make_package

RIGHT = f"Sum them:\n```python\n{ACCEPTED}```\nDone."
FALSE = f"```python\n{WRONG}```"
PROSE = "I cannot do that."


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the problem `sums` and its human programs, none of which was run."""
    home = tmp_path_factory.mktemp("trainer")
    root = home / "ledger"
    well("ledger", "init", "--ledger", root)
    well("import", "icpc", make_package(home / "sums", PROGRAMS, small=1, large=1), "--ledger", root)
    return root


@pytest.fixture(scope="module")
def wanted(ledger: Path) -> Rewards:
    """Correctness alone, so that no timing of a busy machine decides; one reference of three is run beside."""
    return Rewards(
        training="run1",
        ledger=str(ledger),
        criterion="rlvr-added-tests",
        model="m",
        references=3,
        settings={"slots": 2},
    )


@pytest.fixture(scope="module")
def scored(wanted: Rewards) -> list[float | None]:
    """What TRL gets for a group of four: right, wrong, the right one again, and prose without a program."""
    reward = trl_rewards(wanted, num_generations=4)
    assert reward.__name__ == "lapledger"  # TRL logs it under this name
    # GRPOTrainer calls by keywords, with every column of the dataset repeated for each completion
    return reward(
        prompts=["Add up."] * 4,
        completions=[RIGHT, FALSE, RIGHT, PROSE],
        completion_ids=[[1, 2], [3], [4, 5], [6, 7, 8]],
        problem=["sums"] * 4,
        trainer_state=SimpleNamespace(global_step=7),
    )


def test_trl_gets_one_reward_a_completion(scored: list[float | None]) -> None:
    """+1 for the right program, each time; -1 for the wrong one and for none: an empty program prints no sum."""
    assert scored == [1.0, -1.0, 1.0, -1.0]


def test_rollouts_are_facts(scored: list[float | None], ledger: Path) -> None:
    """One declared run, one group of four, each rollout with its text and its program, in the order sampled."""
    assert sql(ledger, "SELECT training_id, model, reward FROM training_declared") == [
        ["run1", "m", "correctness-only"]
    ]
    assert sql(ledger, "SELECT policy, size FROM group_opened") == [[7, 4]]
    assert sql(ledger, "SELECT rollouts, reason FROM group_closed") == [[4, "complete"]]
    rows = sql(
        ledger,
        "SELECT r.ordinal, r.completion_tokens, p.model, p.source_bytes FROM rollout_sampled r"
        " JOIN program p USING (rollout_id) ORDER BY r.ordinal",
    )
    sizes = [len(ACCEPTED), len(WRONG), len(ACCEPTED), 0]
    assert rows == [
        [n, tokens, "run1-7", size] for n, (tokens, size) in enumerate(zip([2, 1, 2, 3], sizes, strict=True))
    ]


REWARDS = """
SELECT ordinal, value, reward_id, program_id FROM reward JOIN program USING (program_id)
JOIN rollout_sampled USING (rollout_id) ORDER BY ordinal
"""


def test_the_same_program_is_run_once_and_each_rollout_has_its_reward(scored: list[float | None], ledger: Path) -> None:
    """Three programs and one reference on three tests are run; four rewards are told, as the trainer got them."""
    assert sql(ledger, "SELECT count(*), count(DISTINCT program_id) FROM execution WHERE accepted") == [[4 * 3, 4]]
    assert sql(ledger, "SELECT count(*) FROM shared") == [[1]]
    assert [row[:2] for row in sql(ledger, REWARDS)] == [[n, value] for n, value in enumerate(scored)]
    assert sql(ledger, "SELECT reason FROM closing") == [["complete"]]


def test_every_rollout_counts_in_an_estimate(scored: list[float | None], ledger: Path) -> None:
    """Two of the four rollouts are right: p_100 = 50%, of four programs."""
    args = ("--criterion", "rlvr-added-tests", "--ledger", ledger, "--json")
    [point] = [p for p in well("curve", *args, "--tau", "100").json["points"] if p["tier"] == "all"]
    assert (point["programs"], point["undecided"], point["p_tau"]) == (4, 0, pytest.approx(50))


def test_a_shared_run_is_traced_explained_and_proven(scored: list[float | None], ledger: Path, tmp_path: Path) -> None:
    """The third rollout's reward leads to the first one's timings; bundles of it and of all prove themselves."""
    rows = sql(ledger, REWARDS)
    (first, _), (reward, program) = (row[2:] for row in (rows[0], rows[2]))
    done = well("trace", reward, "--ledger", ledger, "--json").json
    assert done["differences"] == []
    assert (done["program"]["program_id"], done["executed"]) == (program, rows[0][3])
    assert [test["outcome"] for test in done["tests"]] == ["accepted"] * 3
    assert done["tests"] == well("trace", first, "--ledger", ledger, "--json").json["tests"]
    assert "not executed itself" in well("trace", reward, "--ledger", ledger).out
    assert well("why", program, "--ledger", ledger, "--criterion", "rlvr-added-tests", "--json").code == 0
    assert well("verify", "--ledger", ledger).code == 0
    well("trace", reward, "--ledger", ledger, "--bundle", tmp_path / "reward.zip")
    assert reward_verifier.main([], str(tmp_path / "reward.zip")) == 0
    well("export", "bundle", tmp_path / "all.zip", "--ledger", ledger, "--criterion", "rlvr-added-tests")
    alone = subprocess.run([sys.executable, tmp_path / "all.zip"], capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stderr, "not replayed" in alone.stdout) == (0, "", False)


def test_an_export_reports_whose_runs_count(scored: list[float | None], ledger: Path, tmp_path: Path) -> None:
    """The third rollout points to the first one's rows; everybody else has outcomes of their own."""
    programs = [row[3] for row in sql(ledger, REWARDS)]
    well("export", "csv", tmp_path / "out", "--ledger", ledger, "--criterion", "rlvr-added-tests")
    with (tmp_path / "out" / "programs.csv").open() as file:
        executed = {row["program_id"]: row["executed_program_id"] for row in csv.DictReader(file)}
    assert [executed[program] for program in programs] == [programs[location] for location in (0, 1, 0, 3)]
    with (tmp_path / "out" / "outcomes.csv").open() as file:
        assert {row["program_id"] for row in csv.DictReader(file)} == set(executed.values())


def test_a_rebuilt_ledger_holds_the_shared_runs(scored: list[float | None], ledger: Path, tmp_path: Path) -> None:
    """Sealed, copied without its database and built again: the same rewards, and nothing wrong."""
    well("seal", "--ledger", ledger)
    before = sql(ledger, REWARDS)
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", ledger, copy], check=True)  # to close a database's file here would drop its locks
    for path in copy.glob("ledger.sqlite*"):
        path.unlink()
    well("ledger", "rebuild", "--ledger", copy)
    assert sql(copy, REWARDS) == before
    assert well("verify", "--ledger", copy).code == 0


def test_conversations_are_read_like_texts(wanted: Rewards, capfd: pytest.CaptureFixture[str]) -> None:
    """TRL's chat form: a prompt of messages, and a completion of one message; nothing is printed."""
    reward = trl_rewards(wanted, num_generations=1, column="task")
    prompts = [[{"role": "user", "content": "Add up."}]]
    completions = [[{"role": "assistant", "content": RIGHT}]]
    assert reward(prompts=prompts, completions=completions, task=["sums"]) == [1.0]
    assert capfd.readouterr() == ("", "")


def answers(compute: Callable[..., Any], rows: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """What verl's reward loop gets for rows that it awaits side by side; an error where one is raised."""

    async def every() -> list[Any]:
        calls = [compute(data_source="x", solution_str=t, ground_truth="sums", extra_info=seen) for t, seen in rows]
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(every())


GROUPS = """
SELECT g.policy, g.prompt_blob, g.size, c.rollouts, c.reason, r.ordinal, r.completion_tokens, p.model, w.value
FROM group_opened g JOIN group_closed c USING (group_id) JOIN rollout_sampled r USING (group_id)
JOIN program p USING (rollout_id) JOIN reward w USING (program_id)
WHERE g.training_id = '{}' ORDER BY g._admission, g._row, r.ordinal
"""


def test_verl_requests_one_by_one(wanted: Rewards, ledger: Path) -> None:
    """As verl 0.9.1 does, two prompts of two answers in turns: two groups, with the step that it tells, no prompt."""
    seen = [{"index": index, "num_turns": 2, "rollout_reward_scores": {}, "min_global_steps": 5} for index in (3, 4)]
    rows = [(RIGHT, seen[0]), (FALSE, seen[1]), (PROSE, seen[0]), (RIGHT, seen[1])]
    assert answers(verl_rewards(replace(wanted, training="verl1"), n=2), rows) == [1.0, -1.0, -1.0, 1.0]
    common = [5, None, 2, 2, "complete"]
    expected = [(0, 1.0), (1, -1.0), (0, -1.0), (1, 1.0)]
    result = sql(ledger, GROUPS.format("verl1"))
    assert result == [[*common, ordinal, None, "verl1-5", value] for ordinal, value in expected]


def test_verl_requests_for_a_shuffled_batch(wanted: Rewards, ledger: Path) -> None:
    """As the manager `batch` of verl 0.6.1 does, after rows were balanced: no step, so no policy and no checkpoint."""
    batch = verl_rewards(replace(wanted, training="verl2"), n=2, batched=True)
    extras = np.array([{"problem": "sums", "index": index} for index in (3, 4, 3, 4)], dtype=object)
    sources, truths = np.array(["corpus"] * 4, dtype=object), [""] * 4
    result = batch(
        data_sources=sources, solution_strs=[RIGHT, FALSE, FALSE, RIGHT], ground_truths=truths, extra_infos=extras
    )
    assert result == [1.0, -1.0, -1.0, 1.0]
    common = [None, None, 2, 2, "complete"]
    expected = [(0, 1.0), (1, -1.0), (0, -1.0), (1, 1.0)]
    result = sql(ledger, GROUPS.format("verl2"))
    assert result == [[*common, ordinal, None, "verl2", value] for ordinal, value in expected]
    [[campaign]] = sql(ledger, "SELECT DISTINCT campaign_id FROM verdict WHERE model = 'verl2'")
    done = lap("curve", "--ledger", ledger, "--criterion", "rlvr", "--campaign", campaign)
    assert (done.code, "rollouts of an unknown step have no checkpoint" in done.err) == (2, True)


def test_two_processes_that_request_one_by_one_are_refused(wanted: Rewards, ledger: Path) -> None:
    """With more than one reward worker a group would be split: the second one is told so, and appends nothing."""
    mine = replace(wanted, training="verl3")
    first = verl_rewards(mine, n=1)
    assert answers(first, [(PROSE, {"index": 0})]) == [-1.0]
    code = (
        "import asyncio, sys\nfrom lapledger.trainers import Rewards, verl_rewards\n"
        "compute = verl_rewards(Rewards(training='verl3', ledger=sys.argv[1], criterion='rlvr'), n=8)\n"
        "asyncio.run(compute('x', 'prose', 'sums', {'index': 0}))"
    )
    done = subprocess.run([sys.executable, "-c", code, ledger], capture_output=True, text=True, check=False)
    assert "another process scores the answers of training run 'verl3' one by one" in done.stderr.splitlines()[-1]
    (error,) = answers(verl_rewards(mine, n=8), [(PROSE, {"index": 0})])
    assert "another process" in str(error)
    (error,) = answers(verl_rewards(replace(wanted, training="verl4"), n=2, patience=1.0), [(PROSE, {"index": 0})])
    assert "1 of the 2 answers" in str(error)
    assert sql(ledger, "SELECT count(*) FROM group_opened WHERE training_id = 'verl4'") == [[0]]
    assert sql(ledger, "SELECT count(*) FROM group_opened WHERE training_id = 'verl3'") == [[1]]
    assert answers(first, [(PROSE, {"index": 0})]) == [-1.0]


@pytest.fixture
def hurried(wanted: Rewards) -> Iterator[Scoring]:
    """Workers elsewhere are asked, and there are none."""
    scoring = Scoring(Rewards(training="run2", ledger=wanted.ledger, criterion="rlvr", where="pool", timeout=0.0))
    yield scoring
    scoring.close()


def test_what_has_no_outcome_in_time_is_undecided(hurried: Scoring, ledger: Path) -> None:
    """None for TRL, nan for verl, and no reward in the ledger; the works stay open for whoever comes."""
    assert hurried.scorer.score([Completion(problem="sums", group=0, text=RIGHT)]) == [None]
    assert sql(ledger, "SELECT count(*) FROM reward JOIN program USING (program_id) WHERE model = 'run2'") == [[0]]
    wanted = Rewards(training="run2", ledger=str(ledger), criterion="rlvr", where="pool", timeout=0.0)
    [value] = answers(verl_rewards(wanted, n=1), [(RIGHT, {"index": 0})])
    assert math.isnan(value)


def test_two_at_once_take_turns(wanted: Rewards, ledger: Path) -> None:
    """While a `lap run` holds the machine and time runs out, nothing is run beside it, and nothing is decided."""
    scoring = Scoring(Rewards(training="run3", ledger=str(ledger), criterion="rlvr", timeout=0.0))
    with alone(ledger):
        assert scoring.scorer.score([Completion(problem="sums", group=0, text=RIGHT)]) == [None]
    scoring.close()
    assert sql(ledger, "SELECT count(*) FROM execution JOIN program USING (program_id) WHERE model = 'run3'") == [[0]]


def test_mistakes_are_reported_in_one_line(wanted: Rewards) -> None:
    """An unknown problem, a missing column, a place that is none."""
    reward = trl_rewards(wanted, num_generations=1)
    with pytest.raises(UserError, match="'products' is not in the ledger"):
        reward(prompts=[""], completions=[RIGHT], problem=["products"])
    with pytest.raises(UserError, match="no column 'problem'"):
        reward(prompts=[""], completions=[RIGHT])
    with pytest.raises(UserError, match="no whole number of groups of 2"):
        trl_rewards(wanted, num_generations=2)(prompts=[""], completions=[RIGHT], problem=["sums"])
    with pytest.raises(UserError, match="names no problem"):
        verl_rewards(wanted, n=1, batched=True)(data_sources=["x"], solution_strs=[""], ground_truths=[None])
    with pytest.raises(UserError, match="'here' or in the 'pool'"):
        Scoring(Rewards(training="x", ledger=wanted.ledger, where="there"))
    before = well("verify", "--print-head", "--ledger", wanted.ledger or "").out
    with pytest.raises(UserError, match="training '': a training run's name is one line"):
        trl_rewards(replace(wanted, training=""), num_generations=1)(
            prompts=[""], completions=[RIGHT], problem=["sums"]
        )
    assert well("verify", "--print-head", "--ledger", wanted.ledger or "").out == before
    assert lap("status", "--ledger", wanted.ledger or "").code == 0


BLOCKS = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs/trainers.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("block", [block for block in BLOCKS if "verl_rewards" in block])
def test_a_file_for_verl_works_as_the_page_shows_it(block: str) -> None:
    """It makes a `compute_score`, awaited unless it is asked for batches, and opens no ledger before a call."""
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102
    assert inspect.iscoroutinefunction(names["compute_score"]) is ("batched=True" not in block)


def test_the_page_shows_both_ways_of_verl_and_the_one_of_trl() -> None:
    """And TRL's block is Python with `...` for what a user has."""
    assert sum("verl_rewards" in block for block in BLOCKS) == 2
    [block] = [block for block in BLOCKS if "GRPOTrainer" in block]
    assert "num_generations=args.num_generations" in compile_of(block)


def compile_of(block: str) -> str:
    """A block that is Python, as one text."""
    ast.parse(block.replace(", ...", ""))
    return block
