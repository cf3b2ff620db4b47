"""Which models are meant: training runs by a pattern, and checkpoints by the step that their name carries.

Names only: no measurement is read.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lapledger.replay.errors import ReplayError, nearest

HUMAN = "human"
"""The model of the programs that came with a problem."""
STEP = "{step}"
SEED = "{seed}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint of a training run, and the name its programs carry as their model."""

    run: str
    step: int
    model: str


def checkpoints(models: Iterable[str], pattern: str) -> list[Checkpoint]:
    """The checkpoints among models, by run and step, from a pattern such as `qwen-{step}` or `*-{step}`.

    `{step}` is a whole number, which may end in k for thousands; `*` is any text, and what is left of the name without
    the step names the run. ReplayError when the pattern has no `{step}`, matches no model, or matches a step twice.
    """
    if pattern.count(STEP) != 1:
        raise ReplayError(f"checkpoint pattern {pattern!r}: write {STEP} once where the step stands, as in qwen-{STEP}")
    before, after = (re.escape(part).replace(r"\*", ".*?") for part in pattern.split(STEP))
    form = re.compile(f"({before})([0-9]{{1,15}})(k?)({after})", re.ASCII | re.DOTALL)
    by_step: dict[tuple[str, int], str] = {}
    names = sorted(set(models))
    for model in names:
        match = form.fullmatch(model)
        if match is None:
            continue
        left, digits, thousand, right = match.groups()
        key = (left.rstrip("-_@:/.") + right, int(digits) * (1000 if thousand else 1))
        if key in by_step:
            raise ReplayError(f"models {by_step[key]!r} and {model!r} are both step {key[1]}; write a narrower pattern")
        by_step[key] = model
    if not by_step:
        raise ReplayError(f"no model matches {pattern!r}; the campaign's models are {', '.join(names)}")
    return [Checkpoint(run, step, model) for (run, step), model in sorted(by_step.items())]


def find_runs(models: Iterable[str], patterns: Sequence[str], *, human: str = HUMAN) -> dict[str, tuple[str, ...]]:
    """Training runs by name, each with its models, in the patterns' order; every model but `human` without patterns.

    `*` and `?` stand for any text and any character. With `{step}` a pattern names checkpoints, and of each run the
    last one counts; with `{seed}`, a whole number, it names repetitions of one training, which are one run together.
    ReplayError when a pattern matches none.
    """
    known = sorted(set(models))
    if not patterns:
        return {model: (model,) for model in known if model != human}
    runs: dict[str, tuple[str, ...]] = {}
    for pattern in patterns:
        for run, models_of in _matching(known, pattern).items():
            runs.setdefault(run, models_of)
    return runs


def _matching(known: Sequence[str], pattern: str) -> dict[str, tuple[str, ...]]:
    """The runs of one pattern."""
    if SEED in pattern:
        seeds = checkpoints(known, pattern.replace(SEED, STEP))
        return {
            run: tuple(checkpoint.model for checkpoint in seeds if checkpoint.run == run)
            for run in dict.fromkeys(o.run for o in seeds)
        }
    if STEP in pattern:
        last = {checkpoint.run: checkpoint.model for checkpoint in checkpoints(known, pattern)}
        return {model: (model,) for model in last.values()}
    matching = [model for model in known if fnmatch.fnmatchcase(model, pattern)]
    if not matching:
        raise ReplayError(
            f"no model matches {pattern!r}{nearest(pattern, known) or ';'} the campaign's models are {', '.join(known)}"
        )
    return {model: (model,) for model in matching}
