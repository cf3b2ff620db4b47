"""TRL's `reward_funcs`: a function of prompts, completions and the dataset's columns, one reward a completion.

Written against TRL 1.16 (`GRPOTrainer`), which calls by keywords, repeats each column for every completion, and takes
None for a reward that is not known. TRL itself is not imported.
"""

from collections.abc import Callable, Sequence
from typing import Any

from consumers.completions import UNKNOWN, Completion, prompt_text, text_of
from ledger.errors import UserError

Score = Callable[[Sequence[Completion], int], list[float | None]]
"""What scores a batch at a policy's step."""


def reward_function(score: Score, *, column: str = "problem", name: str = "lapledger") -> Callable[..., Any]:
    """A function for `reward_funcs`; `column` of the dataset names each row's problem, `name` is what TRL logs.

    UserError when the dataset has no such column.
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
        counts = [UNKNOWN] * len(completions) if completion_ids is None else [len(ids) for ids in completion_ids]
        batch = [
            Completion(str(problem), prompt_text(prompt), text_of(completion), tokens)
            for problem, prompt, completion, tokens in zip(columns[column], prompts, completions, counts, strict=True)
        ]
        return score(batch, int(getattr(columns.get("trainer_state"), "global_step", 0)))

    reward.__name__ = reward.__qualname__ = name
    return reward
