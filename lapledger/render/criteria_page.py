"""The reference page of criteria, made from the code: every key, statistic, environment and reward, with its example.

Every number on the page is computed here from the small problem of `replay.explanations.example`.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from lapledger.render.preset_text import as_toml, meaning
from lapledger.replay.criteria import ENVIRONMENTS, PRESETS, REWARDS, Criterion
from lapledger.replay.explanations.example import CHARACTERS, DURATIONS_MS, ENDED, TESTS, example, statistic_value
from lapledger.replay.fields import GROUPS, OF_PERCENTILES
from lapledger.replay.judging.gates import Verdicts, judge
from lapledger.replay.judging.rewards import reward
from lapledger.replay.judging.statistics import STATISTICS

MS = 1_000_000
CANDIDATES = tuple(name for name in DURATIONS_MS if not name.startswith("R"))
INTRODUCTION = """
# Criteria

A criterion defines how stored measurements are scored: plain data in a TOML file, a preset, flags of `lap replay`,
`lap reward` and `lap why`, or arguments of the Python API. Its hash covers its canonical form (RFC 8785, without
defaults), so adding a key with a default changes no hash.

```toml
tau = 30
reading = "leaderboard"
timeout_ms = 1500
startup = "subtract"
min_references = 8
```

`lap replay --criterion strict.toml`

## Output

Correctness c and the optimization gate g are 1, 0 or *undecided*; the quality q lies in [0, 1], 0 best, and is an
interval where data is missing. A program passes when c and g are 1. The gate g requires that q <= tau/100 and,
with `in_time`, that every optimization test kept ends within its limit; under a reward that pays for speed regardless
of correctness (`additive`, `optimization-only`, `multitask`) also that no optimization test kept crashed.

- A run killed at its limit is slower than every duration up to that limit; against a longer one its rank is unknown.
- A limit may be tightened freely. Results under one above the executed limit are never guessed: where a killed run
  would decide, the verdict is undecided, and names the run.
- An undecided reference is not in the pool. A program of the pool is ranked, and held to limits, without itself and
  its exact duplicates. Filters take the whole pool, so that all programs meet the same tests.
- A mean, a limit or a median that depends on a killed reference is an interval, or undecided.
- A run that another tool reports as failed without a reason fails where every kind of failure does. Where only some
  do (timeouts tolerated, a limit set, wrong answers ranked by their durations) it is undecided.
- A reward lies between two bounds, and is decided where they are equal. These bounds, the bound that undecided verdicts
  leave on pass@k, and the sampling interval over problems are separate columns, never merged.
- A problem of which a filter keeps no test is excluded and counted.
- Programs of different campaigns are compared only through a named calibration; without one it is an error.

Ranks are counted, and thresholds compared as fractions: no verdict depends on the last bit of a float. Logarithms and
ratios are rounded to whole steps first, which is part of their definition.
"""


def criteria_page(note: str) -> Iterator[str]:
    """The lines of docs/criteria.md; `note` is its first."""
    yield note
    yield from INTRODUCTION.rstrip().split("\n")
    yield from _keys()
    yield from _example()
    yield from _statistics()
    yield from ("", "## Environments", "")
    yield "Where the speed constraint enters, under the names of the field's paper. Each block is the whole criterion."
    yield from _presets(ENVIRONMENTS)
    yield from ("", "## Rewards", "")
    yield "The presets above pay +1 for a pass and -1 for a fail. The following differ; any reward goes with any"
    yield "environment."
    yield from _presets(REWARDS)
    yield from ("", "## Names and hashes", "", "| name | hash | canonical form |", "|---|---|---|")
    for name, criterion in PRESETS.items():
        yield f"| `{name}` | `{criterion.hash[:12]}` | `{criterion.canonical().decode()}` |"


def _keys() -> Iterator[str]:
    yield from ("", "## Keys", "")
    yield "A quantile is the smallest value that at least such a share of the values do not exceed; a median is the"
    yield "mean of the two middle values."
    for title, fields in GROUPS.items():
        yield from ("", f"### {title[0].upper()}{title[1:]}", "")
        yield from ("| key | allowed | default | meaning |", "|---|---|---|---|")
        for doc in (field.doc for field in fields):
            default = "absent" if doc.default is None else f"`{doc.default}`"
            yield f"| `{doc.name}` | {doc.allowed.replace('|', chr(92) + '|')} | {default} | {doc.meaning} |"


def _example() -> Iterator[str]:
    yield from ("", "## The example", "")
    yield "Five references and five programs, made up. `small` is an original test, `edge` an added correctness test;"
    yield "all pass them in 10 ms but `overfit`. The others are optimization tests; durations in ms, hard limit 10 s."
    ranked = TESTS[2:]
    yield from ("", f"| program | {' | '.join(ranked)} | |", "|---" * (len(ranked) + 2) + "|")
    for name, row in DURATIONS_MS.items():
        seen = [f"{outcome.name.lower()} on {test}" for (program, test), outcome in ENDED.items() if program == name]
        yield f"| {name} | {' | '.join(map(str, row))} | {', '.join(seen).replace('_', ' ')} |"
    yield f"| *characters* | {' | '.join(f'{count:,}' for count in CHARACTERS[2:])} | |"


def _statistics() -> Iterator[str]:
    yield from ("", "## Statistics", "")
    yield "With r the per-test percentile (0 fastest), d the duration, m the median of the references' durations on the"
    yield "test, and T tests. Smaller is faster. `lap replay --tau 30 --set statistic=median`"
    yield from ("", "| statistic | score | of `mixed` |", "|---|---|---|")
    for name, statistic in STATISTICS.items():
        yield f"| `{name}` | {statistic.formula} | {_value(name)} |"


def _value(name: str) -> str:
    value = statistic_value(name, "mixed")
    if name in OF_PERCENTILES:
        return f"{value:.6g}"
    times = ("total", "clipped-total", "median-time", "longest", "geometric-mean")
    return f"{value / MS:.6g} ms" if name in times else f"{value:.6g}"


def _presets(presets: Mapping[str, Criterion]) -> Iterator[str]:
    for name, criterion in presets.items():
        yield from ("", f"### `{name}`", "", meaning(name), "", "```toml")
        yield from as_toml(criterion)
        yield from ("```", "", f"`lap replay --criterion {name}`", "")
        yield from _judged(criterion)


def _judged(criterion: Criterion) -> Iterator[str]:
    yield from ("| program | c | g | q | reward | reason |", "|---|---|---|---|---|---|")
    m = example()
    verdicts = judge(m, criterion)
    rewards = reward(verdicts, criterion)
    for name in CANDIDATES:
        row = m.row(name)
        earned = "undecided" if np.isnan(rewards[row]) else f"{rewards[row]:+.4g}"
        cells = (name, verdicts.c[row], verdicts.g[row], _q(verdicts, row), earned, verdicts.reason[row])
        yield f"| {' | '.join(map(str, cells))} |"


def _q(verdicts: Verdicts, row: int) -> str:
    low, high = (Fraction(int(end[row]), int(verdicts.q_den[row])) for end in (verdicts.q_lo, verdicts.q_hi))
    return f"{float(low):.4g}" if low == high else f"{float(low):.4g} to {float(high):.4g}"
