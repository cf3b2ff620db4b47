"""Reward functions as TRL and verl call them: a real ledger, the real sandbox, rollouts stored and traceable."""

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from lap import lap, sql, well
from packages import ACCEPTED, PROGRAMS, WRONG, make_package

from consumers.completions import Completion
from ledger.errors import UserError
from tui.running import alone
from tui.trainers import Rewards, Scoring, trl_rewards, verl_rewards

RIGHT = f"Sum them:\n```python\n{ACCEPTED}```\nDone."
FALSE = f"```python\n{WRONG}```"
PROSE = "I cannot do that."


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the problem `sums` and its human programs, none of which was run."""
    home = tmp_path_factory.mktemp("trainer")
    root = home / "ledger"
    well("ledger", "init", "--ledger", root)
    well("corpus", "import", make_package(home / "sums", PROGRAMS, small=1, large=1), "--ledger", root)
    return root


@pytest.fixture(scope="module")
def asked(ledger: Path) -> Rewards:
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
def scored(asked: Rewards) -> list[float | None]:
    """What TRL gets for a group of four: right, wrong, the right one again, and prose without a program."""
    reward = trl_rewards(asked)
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
        "SELECT r.ordinal, r.completion_tokens, p.maker, p.source_bytes FROM rollout_sampled r"
        " JOIN program p USING (rollout_id) ORDER BY r.ordinal",
    )
    sizes = [len(ACCEPTED), len(WRONG), len(ACCEPTED), 0]
    assert rows == [
        [n, tokens, "run1-7", size] for n, (tokens, size) in enumerate(zip([2, 1, 2, 3], sizes, strict=True))
    ]


def test_the_same_program_is_run_once_and_its_reward_is_traceable(scored: list[float | None], ledger: Path) -> None:
    """Three programs and one reference on three tests; the right one's reward is computed again from its timings."""
    assert sql(ledger, "SELECT count(*), count(DISTINCT program_id) FROM execution WHERE accepted") == [[4 * 3, 4]]
    [[reward, value]] = sql(
        ledger,
        "SELECT reward_id, value FROM reward JOIN program USING (program_id) JOIN rollout_sampled USING (rollout_id)"
        " WHERE ordinal = 0",
    )
    assert value == 1.0
    done = well("trace", reward, "--ledger", ledger, "--json").json
    assert done["differences"] == []
    assert [test["outcome"] for test in done["tests"]] == ["accepted"] * 3
    assert well("verify", "--ledger", ledger).code == 0
    assert sql(ledger, "SELECT reason FROM closing") == [["complete"]]


def test_conversations_are_read_like_texts(asked: Rewards) -> None:
    """TRL's chat form: a prompt of messages, and a completion of one message."""
    reward = trl_rewards(asked, column="task")
    prompts = [[{"role": "user", "content": "Add up."}]]
    completions = [[{"role": "assistant", "content": RIGHT}]]
    assert reward(prompts=prompts, completions=completions, task=["sums"]) == [1.0]


def test_verl_asks_singly_and_in_batches(asked: Rewards) -> None:
    """Both managers call by keywords; floats come back."""
    single = verl_rewards(asked, batched=False)
    assert single(data_source="corpus", solution_str=RIGHT, ground_truth="sums", extra_info={"index": 3}) == 1.0
    batch = verl_rewards(asked)
    found = batch(
        data_sources=["corpus"] * 2,
        solution_strs=[RIGHT, FALSE],
        ground_truths=["", ""],
        extra_infos=[{"problem": "sums", "index": 3}] * 2,
    )
    assert found == [1.0, -1.0]


@pytest.fixture
def hurried(asked: Rewards) -> Iterator[Scoring]:
    """Workers elsewhere are asked, and there are none."""
    scoring = Scoring(Rewards(training="run2", ledger=asked.ledger, criterion="rlvr", where="pool", timeout=0.0))
    yield scoring
    scoring.close()


def test_what_has_no_outcome_in_time_is_undecided(hurried: Scoring, ledger: Path) -> None:
    """None for TRL, nan for verl, and no reward in the ledger; the works stay open for whoever comes."""
    assert hurried.scorer.score([Completion("sums", "", RIGHT)]) == [None]
    assert sql(ledger, "SELECT count(*) FROM reward JOIN program USING (program_id) WHERE maker = 'run2-0'") == [[0]]
    asked = Rewards(training="run2", ledger=str(ledger), criterion="rlvr", where="pool", timeout=0.0)
    [value] = verl_rewards(asked)(data_sources=["x"], solution_strs=[RIGHT], ground_truths=["sums"], extra_infos=[None])
    assert math.isnan(value)


def test_two_at_once_take_turns(asked: Rewards, ledger: Path) -> None:
    """While a `lap run` holds the machine and time runs out, nothing is run beside it, and nothing is decided."""
    scoring = Scoring(Rewards(training="run3", ledger=str(ledger), criterion="rlvr", timeout=0.0))
    with alone(ledger):
        assert scoring.scorer.score([Completion("sums", "", RIGHT)]) == [None]
    scoring.close()
    assert sql(ledger, "SELECT count(*) FROM execution JOIN program USING (program_id) WHERE maker = 'run3-0'") == [[0]]


def test_mistakes_are_told_in_one_line(asked: Rewards) -> None:
    """An unknown problem, a missing column, a place that is none."""
    reward = trl_rewards(asked)
    with pytest.raises(UserError, match="'products' is not in the ledger"):
        reward(prompts=[""], completions=[RIGHT], problem=["products"])
    with pytest.raises(UserError, match="no column 'problem'"):
        reward(prompts=[""], completions=[RIGHT])
    with pytest.raises(UserError, match="names no problem"):
        verl_rewards(asked)(data_sources=["x"], solution_strs=[""], ground_truths=[None], extra_infos=None)
    with pytest.raises(UserError, match="'here' or in the 'pool'"):
        Scoring(Rewards(training="x", ledger=asked.ledger, where="there"))
    assert lap("status", "--ledger", asked.ledger or "").code == 0
