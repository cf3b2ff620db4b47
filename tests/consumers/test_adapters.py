"""Reward functions as TRL 1.16 and verl 0.9.1 and 0.6.1 call them: which answers make a group, and what is not told."""

import asyncio
import inspect
import math
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import wait
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lapledger.consumers.training import trl, verl
from lapledger.consumers.training.completions import Completion
from lapledger.consumers.training.group_collector import Gatherer
from lapledger.ledger.errors import UserError


class Recorder:
    """Scores a text `k` by k, and keeps what it was asked; a text that is no number is undecided."""

    def __init__(self) -> None:
        self.batches: list[list[Completion]] = []

    def __call__(self, completions: Sequence[Completion]) -> list[float | None]:
        if completions:  # a gatherer asks for nothing once
            self.batches.append(list(completions))
        return [float(item.text) if item.text.isdigit() else None for item in completions]

    def groups(self) -> list[list[str]]:
        """The texts of each group that was scored."""
        actual: dict[Any, list[str]] = defaultdict(list)
        for number, batch in enumerate(self.batches):
            for item in batch:
                actual[number, item.problem, item.group].append(item.text)
        return sorted(actual.values())


# --- TRL


def slice_of(prompts: str, texts: str, **more: Any) -> dict[str, Any]:
    """What GRPOTrainer hands to a process: one letter a prompt, one a completion."""
    state = SimpleNamespace(global_step=7)
    return {
        "prompts": list(prompts),
        "completions": list(texts),
        "completion_ids": [[0] * 3] * len(texts),
        "problem": ["sums"] * len(texts),
        "trainer_state": state,
        "log_extra": print,
        "log_metric": print,
        **more,
    }


def test_trl_groups_are_blocks_of_num_generations() -> None:
    """The same prompt twice in a row is two groups; steps and counts are those that TRL tells."""
    score = Recorder()
    reward = trl.reward_function(score, num_generations=2)
    assert reward(**slice_of("aaaabb", "123456")) == [1, 2, 3, 4, 5, 6]
    assert score.groups() == [["1", "2"], ["3", "4"], ["5", "6"]]
    item = score.batches[0][0]
    assert (item.prompt, item.policy, item.tokens, item.problem) == ("a", 7, 3, "sums")
    assert reward.__name__ == "lapledger"


def test_trl_on_two_processes_refuses_a_split_group() -> None:
    """A group of 8 over two processes of 4: each sees no whole group, and nothing is scored; over two of 8 it does."""
    score = Recorder()
    reward = trl.reward_function(score, num_generations=8)
    for slices in (["aaaa", "aaaa"], ["aaaaaaaabbbb", "bbbbcccccccc"]):
        for prompts in slices:
            with pytest.raises(UserError, match="no whole number of groups of 8: let num_generations divide") as seen:
                reward(**slice_of(prompts, "1" * len(prompts)))
            assert "\n" not in str(seen.value)
    assert score.batches == []
    for prompts in ("aaaaaaaa", "bbbbbbbb"):
        assert reward(**slice_of(prompts, "12345678")) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_trl_refuses_blocks_that_are_no_groups() -> None:
    """With another number than the trainer's, a block has two prompts; in evaluation a function tells which it is."""
    score = Recorder()
    for size, message in ((4, "2 prompts: set num_generations"), (0, "no whole number of groups of 0")):
        with pytest.raises(UserError, match=message):
            trl.reward_function(score, num_generations=size)(**slice_of("aabb", "1234"))
    sizes = iter([2, 1])
    reward = trl.reward_function(score, num_generations=lambda: next(sizes))
    assert reward(**slice_of("aa", "12")) == [1, 2]
    assert reward(**slice_of("ab", "34")) == [3, 4]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"problem": [None, "sums"]}, r"an answer names no problem \(None\)"),
        ({"problem": ["", "sums"]}, "an answer names no problem"),
        ({"problem": ["sums"]}, "2 prompts, 2 completions, 1 problem, 2 completion_ids; give one of each"),
        ({"prompts": ["a"]}, "1 prompts, 2 completions"),
        ({"completion_ids": [[0]]}, "1 completion_ids"),
        ({"completions": [[["x"]], "2"]}, r"\[\['x'\]\].* is neither a text nor a conversation"),
        ({"completions": [7, "2"]}, "7 is neither a text nor a conversation"),
        ({"completions": [[{"content": ["x"]}], "2"]}, "is neither a text nor a conversation"),
        ({"prompts": [None, None]}, "None is neither a text nor a conversation"),
    ],
)
def test_trl_rows_that_cannot_be_read_are_refused(changed: dict[str, Any], message: str) -> None:
    """One line that says what to give; nothing is scored."""
    score = Recorder()
    with pytest.raises(UserError, match=message) as seen:
        trl.reward_function(score, num_generations=2)(**(slice_of("aa", "12") | changed))
    assert "\n" not in str(seen.value)
    assert score.batches == []


def test_trl_without_a_state_has_no_step() -> None:
    """What is not told stays unknown, and an undecided reward is None."""
    score = Recorder()
    reward = trl.reward_function(score, num_generations=1)
    assert reward(prompts=["a"], completions=["?"], problem=["sums"]) == [None]
    [[item]] = score.batches
    assert (item.policy, item.tokens, item.finish_reason) == (None, None, "")


# --- verl


def extra(index: int, **more: Any) -> dict[str, Any]:
    """`extra_info` as verl 0.9.1 fills it: the dataset's, then what the agent loop and the reward manager add."""
    seen = {"index": index, "split": "train", "num_turns": 2, "rollout_reward_scores": {}, "turn_scores": []}
    return {**seen, "min_global_steps": 12, "max_global_steps": 13, "tool_rewards": [], **more}


def loop(compute: Any, rows: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The rewards, or errors, of rows that a reward loop worker awaits side by side."""
    assert inspect.iscoroutinefunction(compute)  # else the worker would call it in a thread

    async def item(text: str, extra_info: dict[str, Any]) -> float:
        return float(await compute(data_source="corpus", solution_str=text, ground_truth="sums", extra_info=extra_info))

    async def every() -> list[Any]:
        return await asyncio.gather(*(item(*row) for row in rows), return_exceptions=True)

    return asyncio.run(every())


def test_verl_requests_one_by_one_in_any_order() -> None:
    """Four groups of four answers in any order: each is scored whole, and every answer gets its own reward."""
    rows = [(str(10 * index + location), extra(index)) for index in range(4) for location in range(4)]
    for seed in range(5):
        score, order = Recorder(), Random(seed).sample(rows, len(rows))  # noqa: S311
        assert loop(verl.reward_function(score, verl.Rows(4)), order) == [float(text) for text, _ in order]
        actual = sorted(sorted(map(int, group)) for group in score.groups())
        assert actual == [[10 * index + location for location in range(4)] for index in range(4)]
        assert {(item.policy, item.prompt) for batch in score.batches for item in batch} == {(12, None)}


def test_the_next_answers_of_a_key_are_the_next_group() -> None:
    """The second epoch: four answers to one prompt with n = 2 are two groups, even when they are scored in one call."""
    score = Recorder()
    assert loop(verl.reward_function(score, verl.Rows(2)), [(text, extra(0)) for text in "1234"]) == [1, 2, 3, 4]
    assert score.groups() == [["1", "2"], ["3", "4"]]


def test_a_group_that_does_not_come_complete_is_refused_and_never_scored() -> None:
    """Three of four answers: each is told so in one line, and the whole group beside them is scored."""
    score = Recorder()
    rows = [*((text, extra(0)) for text in "123"), *((text, extra(1)) for text in "4567")]
    actual = loop(verl.reward_function(score, verl.Rows(4), patience=0.3), rows)
    assert actual[3:] == [4, 5, 6, 7]
    for error in actual[:3]:
        assert isinstance(error, UserError)
        assert "3 of the 4 answers" in str(error)
        assert "reward.num_workers=1" in str(error)
        assert "\n" not in str(error)
    assert score.groups() == [["4", "5", "6", "7"]]


def test_n_and_key_may_be_functions() -> None:
    """Validation samples one answer a prompt; a key of the user's own, or a uid, goes before the index."""
    score = Recorder()
    rows = verl.Rows(lambda seen: 1 if seen["split"] == "test" else 2)
    wanted = [("1", extra(0)), ("2", extra(0, split="test")), ("3", extra(0))]
    assert loop(verl.reward_function(score, rows), wanted) == [1, 2, 3]
    assert score.groups() == [["1", "3"], ["2"]]
    for named, seen in ((verl.Rows(2, key=lambda seen: seen["mine"]), "mine"), (verl.Rows(2), "uid")):
        score = Recorder()
        wanted = [(text, extra(0, **{seen: text in "13"})) for text in "1234"]
        assert loop(verl.reward_function(score, named), wanted) == [1, 2, 3, 4]
        assert score.groups() == [["1", "3"], ["2", "4"]]


def test_the_step_is_reported_by_verl_or_by_the_user_or_unknown() -> None:
    """A number or a function of the user's goes first, then where verl 0.9.1 says it; there is no default."""
    for step, seen, due in (
        (None, {"min_global_steps": 4}, 4),
        (None, {"min_global_steps": None, "global_steps": 5}, 5),
        (6, {"min_global_steps": 4}, 6),
        (lambda: 7, {}, 7),
        (lambda: None, {}, None),
        (None, {}, None),
    ):
        score = Recorder()
        loop(verl.reward_function(score, verl.Rows(1, step=step)), [("1", {"index": 0, **seen})])
        assert [item.policy for item in score.batches[0]] == [due]


def test_a_row_must_name_its_problem_and_its_group() -> None:
    """One line each; nothing is scored."""
    score = Recorder()
    compute = verl.reward_function(score, verl.Rows(1))
    (error,) = loop(compute, [("1", {})])
    assert "names no group; give `extra_info['index']`" in str(error)
    with pytest.raises(UserError, match="names no problem"):
        asyncio.run(compute(data_source="x", solution_str="1", ground_truth=None, extra_info=extra(0)))
    (error,) = loop(verl.reward_function(score, verl.Rows(0)), [("1", extra(0))])
    assert isinstance(error, UserError)
    assert score.batches == []


def test_verl_rows_that_cannot_be_read_are_refused() -> None:
    """An answer that is no text, info that is no mapping, a step that is no number, lists of several lengths."""
    score = Recorder()
    for text, info, message in (
        (None, extra(0), "an answer to 'sums' is None, no text; decode it"),
        (7, extra(0), "is 7, no text"),
        ("1", ["x"], "has list for `extra_info`"),
        ("1", {"index": 0, "global_steps": "soon"}, "global_steps is 'soon', no whole number"),
        ("1", {"index": 0, "global_steps": math.nan}, "global_steps is nan, no whole number"),
        ("1", {**extra(0), "prompt": [["x"]]}, "is neither a text nor a conversation"),
    ):
        answer = verl.reward_function(score, verl.Rows(1))
        with pytest.raises(UserError, match=message):
            asyncio.run(answer(data_source="x", solution_str=text, ground_truth="sums", extra_info=info))
    assert loop(verl.reward_function(Recorder(), verl.Rows(1)), [("1", {"index": 0, "global_steps": None})]) == [1]
    compute = verl.batch_reward_function(score, verl.Rows(1))
    for part in ("data_sources", "solution_strs", "ground_truths", "extra_infos"):
        with pytest.raises(UserError, match=r"not equally long: \d data sources, \d answers"):
            compute(**(batch_of([("1", extra(0)), ("2", extra(1))]) | {part: ["x"]}))
    assert score.batches == []


def test_an_undecided_reward_is_nan_or_what_the_user_chose() -> None:
    """A nan is seen at once."""
    assert math.isnan(loop(verl.reward_function(Recorder(), verl.Rows(1)), [("?", extra(0))])[0])
    assert loop(verl.reward_function(Recorder(), verl.Rows(1, undecided=-2.0)), [("?", extra(0))]) == [-2]


def batch_of(rows: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What the manager `batch` of verl 0.6.1 hands over: arrays of objects where the batch has them."""
    extras = np.empty(len(rows), dtype=object)
    extras[:] = [seen for _, seen in rows]
    return {
        "data_sources": np.array(["corpus"] * len(rows), dtype=object),
        "solution_strs": [text for text, _ in rows],
        "ground_truths": ["sums"] * len(rows),
        "extra_infos": extras,
    }


def test_a_balanced_batch_keeps_its_groups() -> None:
    """`_balance_batch` reorders rows: two groups of four stay two groups. A prompt in an array is read, if told."""
    talk = np.array([{"role": "user", "content": "Add up."}], dtype=object)
    rows = [
        (str(10 * index + location), {"index": np.int64(index), "rollout_reward_scores": {}, "prompt": talk})
        for location in range(4)
        for index in range(1, 3)
    ]
    score = Recorder()
    assert verl.batch_reward_function(score, verl.Rows(4))(**batch_of(rows)) == [float(text) for text, _ in rows]
    assert score.groups() == [["10", "11", "12", "13"], ["20", "21", "22", "23"]]
    assert {(item.prompt, item.policy) for item in score.batches[0]} == {
        ('[{"content": "Add up.", "role": "user"}]', None)
    }


def test_a_batch_with_a_part_of_a_group_is_refused() -> None:
    """Three of four, or two groups under one key."""
    for count in (3, 8):
        compute = verl.batch_reward_function(Recorder(), verl.Rows(4))
        with pytest.raises(UserError, match=f"has {count} answers in a batch, not 4"):
            compute(**batch_of([("1", extra(0))] * count))
    with pytest.raises(UserError, match="names no group"):
        compute(data_sources=["x"], solution_strs=["1"], ground_truths=["sums"])


# --- gathering


def completion(text: str, group: int = 0) -> Completion:
    """One answer to the problem `sums`."""
    return Completion(problem="sums", group=group, text=text)


def test_threads_may_share_a_gatherer() -> None:
    """Sixteen threads hand over four groups of eight in any order; every group is scored once, whole."""
    score = Recorder()
    gatherer = Gatherer(score, patience=60)
    rewards: dict[str, Any] = {}
    texts = Random(1).sample([str(100 + n) for n in range(32)], 32)  # noqa: S311

    def hand_over(mine: Sequence[str]) -> None:
        for text in mine:
            rewards[text] = gatherer.join(completion(text, int(text) % 4), 8)

    threads = [threading.Thread(target=hand_over, args=(texts[n::16],)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait(rewards.values(), timeout=60)
    assert {text: reward.result(0) for text, reward in rewards.items()} == {text: float(text) for text in texts}
    assert sorted(sorted(group) for group in score.groups()) == [
        [str(100 + n) for n in range(k, 32, 4)] for k in range(4)
    ]


def test_who_stops_waiting_leaves_the_others_their_rewards() -> None:
    """The first of two is cancelled before the second comes."""

    async def both() -> float | None:
        gatherer = Gatherer(Recorder(), patience=60)
        first = asyncio.create_task(gatherer.reward(completion("1"), 2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await gatherer.reward(completion("2"), 2)

    assert asyncio.run(both()) == 2


def test_what_refuses_every_batch_refuses_the_first_answer() -> None:
    """The only one of eight is told at once, though its group never becomes whole; the next call tries again."""
    refusals = iter([UserError("another process"), None])

    def score(completions: Sequence[Completion]) -> list[float | None]:
        if not completions and (error := next(refusals)) is not None:
            raise error
        return [1.0] * len(completions)

    async def twice() -> list[Any]:
        gatherer = Gatherer(score, patience=60)
        [first] = await asyncio.gather(gatherer.reward(completion("1"), 8), return_exceptions=True)
        return [str(first), await gatherer.reward(completion("1"), 1)]

    assert asyncio.run(twice()) == ["another process", 1.0]


def test_an_error_of_the_scoring_is_the_answer_to_all() -> None:
    """And the next group is scored as ever."""

    def score(completions: Sequence[Completion]) -> list[float | None]:
        if any(item.text == "bad" for item in completions):
            raise UserError("no such problem")
        return [1.0] * len(completions)

    async def every() -> list[Any]:
        gatherer = Gatherer(score, patience=60)
        bad = [gatherer.reward(completion(text), 2) for text in ("bad", "1")]
        first = await asyncio.gather(*bad, return_exceptions=True)
        return [*map(str, first), *await asyncio.gather(*(gatherer.reward(completion("1"), 2) for _ in range(2)))]

    assert asyncio.run(every()) == ["no such problem", "no such problem", 1.0, 1.0]


def test_members_that_disagree_on_the_size_are_refused() -> None:
    """The second is, at once; so is a group of none."""
    gatherer = Gatherer(Recorder(), patience=60)
    gatherer.join(completion("1"), 2)
    with pytest.raises(UserError, match="2 and 3 answers"):
        gatherer.join(completion("2"), 3)
    with pytest.raises(UserError, match="at least one answer, not 0"):
        gatherer.join(completion("3", 1), 0)
