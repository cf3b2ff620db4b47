"""Difficulty tiers of problems: a field that the user named, or terciles of how long the human solutions are.

Only which problems lie in a tier; how a model does there is for the other estimates.
"""

import io
import re
import tokenize
from collections.abc import Mapping, Sequence

import numpy as np

from lapledger.replay.errors import ReplayError

TIERS = ("easy", "medium", "hard")
_SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def token_count(source: str) -> int:
    """The Python tokens of a program: names, numbers, strings, operators; no comments, line ends or indents.

    A text that Python cannot read is split into identifiers and signs instead.
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return len(re.findall(r"\w+|[^\w\s]", source))
    return sum(1 for token in tokens if token.type not in _SILENT)


def by_terciles(tokens: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Problem -> easy, medium or hard: terciles of the median token count of its correct references.

    Cuts are the quantiles 1/3 and 2/3 over problems (linear between neighbours); a problem on a cut is of the easier
    tier. ReplayError where a problem has no correct reference.
    """
    bare = sorted(problem for problem, counts in tokens.items() if not len(counts))
    if bare:
        raise ReplayError(f"tiers: problem {bare[0]} has no correct reference to count tokens of; leave it out")
    if not tokens:
        return {}
    medians = {problem: float(np.median(counts)) for problem, counts in tokens.items()}
    cuts = np.quantile(list(medians.values()), [1 / 3, 2 / 3])
    return {problem: TIERS[int(np.searchsorted(cuts, value, side="left"))] for problem, value in medians.items()}


def by_field(values: Mapping[str, str | None]) -> dict[str, str]:
    """Problem -> the name of its tier in that field; ReplayError where a problem has none."""
    bare = sorted(problem for problem, value in values.items() if not value)
    if bare:
        raise ReplayError(f"tiers: problem {bare[0]} names no tier; use the token counts of its references")
    return {problem: str(value) for problem, value in values.items()}


def members(tiers: Mapping[str, str]) -> dict[str, list[str]]:
    """Tier -> its problems, easy to hard, then tiers by other names in alphabetical order."""
    order = [*TIERS, *sorted(set(tiers.values()) - set(TIERS))]
    by_tier = {tier: sorted(p for p, problem_tier in tiers.items() if problem_tier == tier) for tier in order}
    return {tier: problems for tier, problems in by_tier.items() if problems}
