"""TRL's `reward_funcs`: a function of prompts, completions and the dataset's columns, one reward a completion.

Written against TRL 1.16 (`GRPOTrainer`), which calls by keywords on each process's slice of a batch, in which the
completions of a prompt follow one another, repeats each column for every completion, and takes None for a reward that
is not known. TRL itself is not imported.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lapledger.consumers.training.completions import Completion, prompt_text, text_of
from lapledger.consumers.training.scoring import Score
from lapledger.ledger.errors import UserError


def reward_function(
    score: Score, *, num_generations: int | Callable[[], int], column: str = "problem", name: str = "lapledger"
) -> Callable[..., Any]:
    """A function for `reward_funcs`; `column` of the dataset names each row's problem, `name` is what TRL logs.

    `num_generations` is the trainer's, or is asked at each call where it differs in evaluation. UserError when the
    dataset has no such column, when a row names no problem or is no text, or when a slice is no whole number of groups.
    """

    def reward(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        if column not in columns:
            raise UserError(
                f"the dataset has no column {column!r} that names each row's problem; add it, or name another"
            )
        columns_given = {"prompts": prompts, "completions": completions, column: columns[column]}
        _check_lengths(columns_given if completion_ids is None else {**columns_given, "completion_ids": completion_ids})
        size = num_generations() if callable(num_generations) else num_generations
        counts = [None] * len(completions) if completion_ids is None else [len(ids) for ids in completion_ids]
        policy = getattr(columns.get("trainer_state"), "global_step", None)
        rows = zip(columns[column], map(prompt_text, prompts), completions, counts, strict=True)
        batch = [
            Completion(
                problem=problem,
                group=index // max(size, 1),
                text=text_of(completion),
                prompt=prompt,
                policy=None if policy is None else int(policy),
                tokens=tokens,
            )
            for index, (problem, prompt, completion, tokens) in enumerate(rows)
        ]
        _check_groups(batch, size)
        return score(batch)

    reward.__name__ = reward.__qualname__ = name
    return reward


def _check_lengths(columns_given: Mapping[str, Sequence[Any]]) -> None:
    """Returns when TRL's lists by their names are as long as each other: they are read row by row."""
    lengths = {name: len(values) for name, values in columns_given.items()}
    if len({*lengths.values()}) > 1:
        counts = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise UserError(f"lists that are not equally long: {counts}; give one of each a completion")


def _check_groups(batch: Sequence[Completion], size: int) -> None:
    """Returns when a slice is whole groups of `size`, one prompt each; a part of a group would pass for all of it."""
    if size < 1 or len(batch) % size:
        raise UserError(
            f"a process has {len(batch)} completions, no whole number of groups of {size}: let num_generations divide"
            " per_device_train_batch_size * steps_per_generation (in evaluation, per_device_eval_batch_size)"
        )
    for start in range(0, len(batch), size):
        prompts = {(completion.problem, completion.prompt) for completion in batch[start : start + size]}
        if len(prompts) > 1:
            raise UserError(
                f"completions {start} to {start + size - 1} of a process have {len(prompts)} prompts: set"
                f" num_generations to the trainer's, not {size} (a function where evaluation has another)"
            )
