"""verl's custom reward function, for one answer and for a batch. verl itself is not imported.

verl knows no reward that is not known: an undecided one is nan unless its user chose a number, as a zero made of a
broken machine would be learned from, and a nan is seen at once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from consumers.adapters.trl import Score
from consumers.completions import UNKNOWN, Completion, prompt_text
from ledger.errors import UserError

STEP = "global_steps"
"""Where verl puts the policy's step, if it is told."""


def reward_function(score: Score, *, undecided: float = math.nan) -> Callable[..., float]:
    """`compute_score(data_source, solution_str, ground_truth, extra_info=None)` for reward managers that ask singly.

    The problem is `extra_info["problem"]`, else the ground truth. Each call is a group of one: a batch is better.
    """
    batched = batch_reward_function(score, undecided=undecided)

    def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **_more: Any,
    ) -> float:
        return batched([data_source], [solution_str], [ground_truth], [extra_info])[0]

    return compute_score


def batch_reward_function(score: Score, *, undecided: float = math.nan) -> Callable[..., list[float]]:
    """`compute_score(data_sources, solution_strs, ground_truths, extra_infos)` for the reward manager `batch`."""

    def compute_score(
        data_sources: Sequence[str],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Sequence[Mapping[str, Any] | None] | None = None,
        **_more: Any,
    ) -> list[float]:
        extras = [extra or {} for extra in extra_infos] if extra_infos is not None else [{}] * len(solution_strs)
        rows = zip(data_sources, solution_strs, ground_truths, extras, strict=True)
        batch = [_completion(*row) for row in rows]
        step = max((int(extra.get(STEP, 0)) for extra in extras), default=0)
        return [undecided if value is None else value for value in score(batch, step)]

    return compute_score


def _completion(source: str, text: str, truth: Any, extra: Mapping[str, Any]) -> Completion:
    problem = extra.get("problem", truth)
    if not isinstance(problem, str) or not problem:
        raise UserError(
            f"a row of {source!r} names no problem; give `extra_info['problem']` or a ground truth that does"
        )
    prompt = extra.get("prompt", extra.get("index", ""))
    words = prompt if isinstance(prompt, str) else prompt_text(prompt) if isinstance(prompt, Sequence) else str(prompt)
    return Completion(problem, words, text, int(extra.get("completion_tokens", UNKNOWN)))
