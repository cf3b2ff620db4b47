"""Two models on the same problems: every estimate of `lap compare`, made from verdicts that are already there.

Each bootstrap starts from the same seed, so a row does not depend on the rows beside it. What is told of them is made
in `compared`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lapledger.cli.study_options import of_models
from lapledger.render.output import progress
from lapledger.replay.estimates import (
    READINGS,
    BestOf,
    Counts,
    Difference,
    PassEstimate,
    SameCode,
    SlowShare,
    WinRate,
    adjusted,
    best_curve,
    between_campaigns,
    between_halves,
    count,
    difference,
    efficiencies,
    many_comparisons,
    members,
    pass_estimate,
    resolution_warning,
    slower_than_all,
    speed_ups,
    speeds,
    win_rate,
)
from lapledger.replay.studies.curves import ALL
from lapledger.replay.studies.warnings import Places, cautions
from lapledger.workflows.comparison_arms import Side, Sides

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user chose beside the criterion."""

    taus: tuple[str, ...]
    k: int
    seed: int
    resamples: int
    adjust: str

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers from their start."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, slots=True)
class PassRow:
    """pass@k of one side at one tau."""

    tau: str
    side: str
    estimate: PassEstimate


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A minus B at one tau on the problems of one tier."""

    tau: str
    tier: str
    found: Difference
    adjusted_p: float | None


@dataclass(frozen=True, slots=True)
class BestRow:
    """The best of N samples of one training run: quality 1 - q, and speed over the median reference's."""

    run: str
    quality: BestOf
    speed: BestOf | None  # over the problems that have a correct reference; None where none has so many samples


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is said of two sides."""

    passes: tuple[PassRow, ...]
    differences: tuple[DifferenceRow, ...]
    wins: tuple[WinRate, ...]  # none where the sides are of two campaigns
    best: tuple[BestRow, ...]
    slower: Mapping[str, SlowShare]  # by training run
    same: tuple[SameCode, ...]
    warnings: tuple[str, ...]


def compare(sides: Sides, asked: Asked, tiers: Mapping[str, str], same: Sequence[SameCode]) -> Comparison:
    """Every estimate of two sides; `tiers` gives each problem's, and `same` are the A/A figures to hold it against."""
    passes: list[PassRow] = []
    differences: list[DifferenceRow] = []
    with progress("estimating", len(asked.taus)) as bar:
        for tau in asked.taus:
            counts = [_counts(side, tau) for side in (sides.a, sides.b)]
            passes += [_pass(side, tau, own, asked) for side, own in zip((sides.a, sides.b), counts, strict=True)]
            differences += _differences(counts, tau, tiers, asked)
            bar.advance(bar.task_ids[0])
    runs = dict.fromkeys((run, side) for side in (sides.a, sides.b) for run in side.runs)
    return Comparison(
        passes=tuple(passes),
        differences=_with_adjusted(differences, asked.adjust),
        wins=_wins(sides, asked) if sides.one_campaign else (),
        best=tuple(row for run, side in runs for row in _best(side, run)),
        slower={run: _slower(side, run) for run, side in runs},
        same=tuple(same),
        warnings=_warnings(sides, asked, len(differences)),
    )


def same_code(questions: "Questions", sides: Sides, again: str | None) -> list[SameCode]:
    """A/A figures: between the campaigns of the sides, a campaign that ran the same programs, and repetition halves."""
    from lapledger.replay.loading import load

    one = sides.a.judged
    found = [between_halves(one.snapshot.problems, one.criterion)]
    if not sides.one_campaign:
        found.append(between_campaigns(one.snapshot.problems, sides.b.judged.snapshot.problems, one.criterion))
    else:
        other = again or _other_campaign(questions, sides.a.campaign)
        if other:
            found.append(between_campaigns(one.snapshot.problems, load(questions, other).problems, one.criterion))
    return [figure for figure in found if figure is not None]


def _other_campaign(questions: "Questions", name: str) -> str | None:
    """The campaign that shares most programs with one; None where none shares any."""
    rows = {row["campaign_id"]: set(row["programs"]) for row in questions.rows("SELECT * FROM campaign")}
    own = rows.pop(name)
    shared = sorted((-len(own & members_), other) for other, members_ in rows.items() if own & members_)
    return shared[0][1] if shared else None


def _pass(side: Side, tau: str, counts: Sequence[Counts], asked: Asked) -> PassRow:
    return PassRow(tau, side.word, pass_estimate(counts, asked.k, asked.rng, resamples=asked.resamples))


def _counts(side: Side, tau: str) -> list[Counts]:
    verdicts = side.judged.at(tau)
    return [count(verdicts, side.judged.measured, run) for run in side.runs]


def _differences(
    counts: Sequence[Sequence[Counts]], tau: str, tiers: Mapping[str, str], asked: Asked
) -> list[DifferenceRow]:
    """All problems first, then each tier."""
    parts: dict[str, set[str] | None] = {ALL: None, **{name: set(own) for name, own in members(tiers).items()}}
    rows = []
    for tier, problems in parts.items():
        a, b = ([_on(one, problems) for one in side] for side in counts)
        found = difference(a, b, asked.k, asked.rng, resamples=asked.resamples)
        rows.append(DifferenceRow(tau, tier, found, None))
    return rows


def _on(counts: Counts, problems: set[str] | None) -> Counts:
    """The counts on some problems."""
    if problems is None:
        return counts
    kept = np.array([p in problems for p in counts.problems], dtype=np.bool_)
    return replace(
        counts,
        problems=tuple(p for p in counts.problems if p in problems),
        samples=counts.samples[kept],
        passed=counts.passed[kept],
        undecided=counts.undecided[kept],
        left_out=tuple(p for p in counts.left_out if p in problems),
    )


def _with_adjusted(rows: Sequence[DifferenceRow], method: str) -> tuple[DifferenceRow, ...]:
    found = adjusted([row.found.p for row in rows], method)
    return tuple(replace(row, adjusted_p=p) for row, p in zip(rows, found, strict=True))


def _wins(sides: Sides, asked: Asked) -> tuple[WinRate, ...]:
    judged = sides.a.judged
    a, b = (
        [speeds(judged.verdicts, judged.measured, judged.criterion, [run]) for run in side.runs]
        for side in (sides.a, sides.b)
    )
    return tuple(win_rate(a, b, reading, asked.rng) for reading in READINGS)


def _best(side: Side, run: str) -> list[BestRow]:
    judged = side.judged
    quality = best_curve(*efficiencies(judged.verdicts, judged.measured, run))
    speed = {one.n: one for one in best_curve(*speed_ups(judged.verdicts, judged.measured, judged.criterion, run))}
    return [BestRow(run, one, speed.get(one.n)) for one in quality]


def _slower(side: Side, run: str) -> SlowShare:
    return slower_than_all(side.judged.verdicts, side.judged.measured, side.judged.criterion, run)


def _pool_sizes(side: Side) -> list[int]:
    """How many references ranked each program of a side."""
    return [
        int(v.pool_size[row])
        for v, m in zip(side.judged.verdicts, side.judged.measured, strict=True)
        for row in np.flatnonzero(m.candidate & np.isin(np.array(m.models), side.runs))
    ]


def _warnings(sides: Sides, asked: Asked, comparisons: int) -> tuple[str, ...]:
    found = [many_comparisons(comparisons, asked.adjust)]
    for side in (sides.a, sides.b):
        judged = side.judged
        sizes = _pool_sizes(side)
        found += [resolution_warning(sizes, replace(judged.criterion, tau=tau)) for tau in asked.taus]
        fit = None if sides.calibration is None else sides.calibration.fit
        own = of_models(judged.measured, side.runs)
        found += cautions(own, {side.word: judged.criterion}, fit, Places(asked.taus))
    if not sides.one_campaign:
        found.append("win rates are left out: durations of programs are never mapped from one campaign into another")
    return tuple(dict.fromkeys(one for one in found if one))
