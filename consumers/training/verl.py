"""verl's custom reward function: one answer a call, joined to groups by key, or a batch. verl itself is not imported.

Written against verl 0.9.1, whose reward loop awaits the function for one answer at a time, and for `batched` against
verl 0.6.1 with `reward_model.reward_manager=batch`. Both call by keywords and tell neither the prompt nor the group:
what a group is follows from a key, never from the order. verl knows no reward that is not known: an undecided one is
nan unless its user chose a number, as a zero made of a broken machine would be learned from, and a nan is seen at once.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapledger.consumers.training.completions import Completion, prompt_text
from lapledger.consumers.training.group_collector import Gatherer
from lapledger.consumers.training.scoring import Score
from lapledger.ledger.errors import UserError

Extra = Mapping[str, Any]
"""A row's `extra_info`."""

STEPS = ("min_global_steps", "global_steps")
"""Where verl 0.9.1 tells the weights that began an answer, and where users put a step."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How a row of verl is read. `n` answers are a group, a number or a function of `extra_info`.

    `key` names the group of a row (`uid` or `index` of `extra_info` by default), `step` the policy's optimizer step
    where verl does not tell it; each may be a function.
    """

    n: int | Callable[[Extra], int]
    key: Callable[[Extra], Hashable] | None = None
    step: int | Callable[[], int | None] | None = None
    undecided: float = math.nan

    def size(self, extra: Extra) -> int:
        """How many answers the group of a row has."""
        return self.n(extra) if callable(self.n) else self.n

    def completion(self, source: Any, text: str, truth: Any, extra: Extra) -> Completion:
        """A row as a completion; UserError when it names no problem or no group."""
        if not isinstance(extra, Mapping):
            raise UserError(f"a row of {source!r} has {type(extra).__name__} for `extra_info`; give names and values")
        problem = extra.get("problem", truth)
        if not isinstance(problem, str) or not problem:
            raise UserError(
                f"a row of {source!r} names no problem; give `extra_info['problem']` or a ground truth that does"
            )
        prompt = _plain(extra.get("prompt"))
        return Completion(
            problem=str(problem),
            group=self._group(source, extra),
            text=text,
            prompt=None if prompt is None else prompt_text(prompt),
            policy=self._policy(extra),
            tokens=_integer("completion_tokens", extra.get("completion_tokens")),
        )

    def value(self, reward: float | None) -> float:
        """A reward as verl takes it."""
        return self.undecided if reward is None else reward

    def _group(self, source: Any, extra: Extra) -> Hashable:
        if self.key is not None:
            return self.key(extra)
        if extra.get("uid") is not None:
            return str(extra["uid"])
        if extra.get("index") is None:
            raise UserError(f"a row of {source!r} names no group; give `extra_info['index']`, one a prompt, or `key`")
        return tuple(str(part) for part in (source, extra.get("split"), extra["index"]) if part is not None)

    def _policy(self, extra: Extra) -> int | None:
        step = self.step() if callable(self.step) else self.step
        stated = [("step", step), *((name, extra.get(name)) for name in STEPS)]
        return next((_integer(*pair) for pair in stated if pair[1] is not None), None)


def reward_function(score: Score, rows: Rows, *, patience: float = 600.0) -> Callable[..., Any]:
    """`async compute_score(data_source, solution_str, ground_truth, extra_info)` for verl's reward loop.

    The answers of a group are awaited, for `patience` seconds, and scored together. One process must see all of them:
    `reward.num_workers=1`.
    """
    gatherer = Gatherer(score, patience=patience)

    async def compute_score(
        data_source: Any, solution_str: str, ground_truth: Any = None, extra_info: Extra | None = None, **_more: Any
    ) -> float:
        extra = extra_info or {}
        completion = rows.completion(data_source, solution_str, ground_truth, extra)
        return rows.value(await gatherer.reward(completion, rows.size(extra)))

    return compute_score


def batch_reward_function(score: Score, rows: Rows) -> Callable[..., list[float]]:
    """`compute_score(data_sources, solution_strs, ground_truths, extra_infos)` for the reward manager `batch`.

    UserError when a group has not the number of answers that it should: each group is whole in a batch, in any order.
    """

    def compute_score(
        data_sources: Sequence[Any],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Sequence[Extra | None] | None = None,
        **_more: Any,
    ) -> list[float]:
        extras = [{}] * len(solution_strs) if extra_infos is None else [extra or {} for extra in extra_infos]
        lengths = [len(values) for values in (data_sources, solution_strs, ground_truths, extras)]
        if len({*lengths}) > 1:
            counts = "{} data sources, {} answers, {} ground truths and {} extra infos".format(*lengths)
            raise UserError(f"lists that are not equally long: {counts}; give one of each an answer")
        stated = zip(data_sources, solution_strs, ground_truths, extras, strict=True)
        batch = [rows.completion(*row) for row in stated]
        _check_groups(batch, map(rows.size, extras))
        return [rows.value(value) for value in score(batch)]

    return compute_score


def _check_groups(batch: Sequence[Completion], sizes: Iterable[int]) -> None:
    counts = Counter((pair.problem, pair.group) for pair in batch)
    for pair, size in zip(batch, sizes, strict=True):
        key = pair.problem, pair.group
        if counts[key] != size:
            raise UserError(
                f"group {key!r} has {counts[key]} answers in a batch, not {size}; set n, or give another key"
            )


def _plain(value: Any) -> Any:
    """An array or a number of numpy as Python's own, everything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _integer(name: str, value: Any) -> int | None:
    """A count that a trainer tells, None where it does not; UserError for one that is none."""
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name} is {value!r}, no whole number; give one, or leave it out") from None
