"""Writes samples.jsonl: completions of two checkpoints, whose programs are those of the packages beside it.

`python corpus/write_samples.py`. The file is small example data for `lap import samples`, not the work of a model.
"""

import json
from pathlib import Path

CORPUS = Path(__file__).resolve().parent
CHECKPOINTS = {
    "tuned-0": {
        "slidingmax": ("slice_max", "segment_tree", "strict_pop", "monotone_deque"),
        "stonegame": ("any_table", "dict_memo", "sum_of_ends", "push_forward"),
        "pairsums": ("bisect_all", "offset_array", "set_of_values", "map_lookup"),
        "recurrence": ("matrix_class", "growing_cache", "assumed_period", "full_table"),
    },
    "tuned-100": {
        "slidingmax": ("contribution", "two_stacks", "monotone_deque", "last_window_missing"),
        "stonegame": ("masks_with_period", "period_dict", "shifting_mask", "push_forward"),
        "pairsums": ("token_counter", "set_intersection", "map_lookup", "pairs_with_itself"),
        "recurrence": ("small_and_giant_steps", "digit_tables", "block_walk", "float_roots"),
    },
}
"""The later checkpoint writes faster programs, and as many wrong ones but on one problem."""


def main() -> None:
    """Writes a row for each problem of each checkpoint, with its completions."""
    rows = []
    for model, problems in CHECKPOINTS.items():
        for problem, names in problems.items():
            paths = [next((CORPUS / problem / "submissions").glob(f"*/{name}.py")) for name in names]
            completions = [f"This reads the input once.\n\n```python\n{path.read_text()}```\n" for path in paths]
            rows.append({"problem": problem, "model": model, "completions": completions})
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (CORPUS / "samples.jsonl").write_text(text)


if __name__ == "__main__":
    main()
