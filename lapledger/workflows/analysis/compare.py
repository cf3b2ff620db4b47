"""Two models on the same problems: every estimate of `lap compare`, made from verdicts that are already there.

Each bootstrap starts from the same seed, so a row does not depend on the rows beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

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
from lapledger.replay.measurements import of_models
from lapledger.replay.studies.curves import ALL
from lapledger.replay.studies.warnings import Variants, warnings_of
from lapledger.workflows.analysis.comparison_arms import Arm, Arms
from lapledger.workflows.reporter import LOGGING, Reporter

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
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
    """pass@k of one arm at one tau."""

    tau: str
    arm: str
    estimate: PassEstimate


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A minus B at one tau on the problems of one tier."""

    tau: str
    tier: str
    estimate: Difference
    adjusted_p: float | None


@dataclass(frozen=True, slots=True)
class BestRow:
    """The best of N samples of one training run: quality 1 - q, and speed over the median reference's."""

    run: str
    quality: BestOf
    speed: BestOf | None  # over the problems that have a correct reference; None where none has so many samples


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is said of two arms."""

    passes: tuple[PassRow, ...]
    differences: tuple[DifferenceRow, ...]
    wins: tuple[WinRate, ...]  # none where the arms are of two campaigns
    best: tuple[BestRow, ...]
    slower: Mapping[str, SlowShare]  # by training run
    same: tuple[SameCode, ...]
    warnings: tuple[str, ...]


def compare(
    arms: Arms,
    options: ComparisonOptions,
    tiers: Mapping[str, str],
    same: Sequence[SameCode],
    *,
    reporter: Reporter = LOGGING,
) -> Comparison:
    """Every estimate of two arms; `tiers` gives each problem's, and `same` are the A/A figures to hold it against."""
    passes: list[PassRow] = []
    differences: list[DifferenceRow] = []
    with reporter.progress("estimating", len(options.taus)) as bar:
        for tau in options.taus:
            counts = [_counts(arm, tau) for arm in (arms.a, arms.b)]
            passes += [
                _pass(arm, tau, arm_counts, options) for arm, arm_counts in zip((arms.a, arms.b), counts, strict=True)
            ]
            differences += _differences(counts, tau, tiers, options)
            bar.advance()
    runs = dict.fromkeys((run, arm) for arm in (arms.a, arms.b) for run in arm.runs)
    return Comparison(
        passes=tuple(passes),
        differences=_with_adjusted(differences, options.adjust),
        wins=_wins(arms, options) if arms.one_campaign else (),
        best=tuple(row for run, arm in runs for row in _best(arm, run)),
        slower={run: _slower(arm, run) for run, arm in runs},
        same=tuple(same),
        warnings=_warnings(arms, options, len(differences)),
    )


def same_code(questions: "Questions", arms: Arms, again: str | None) -> list[SameCode]:
    """A/A figures: between the campaigns of the arms, a campaign that ran the same programs, and repetition halves."""
    from lapledger.replay.loading import load

    judged = arms.a.judged
    figures = [between_halves(judged.snapshot.problems, judged.criterion)]
    if not arms.one_campaign:
        figures.append(between_campaigns(judged.snapshot.problems, arms.b.judged.snapshot.problems, judged.criterion))
    else:
        replicate = again or _other_campaign(questions, arms.a.campaign)
        if replicate:
            figures.append(
                between_campaigns(judged.snapshot.problems, load(questions, replicate).problems, judged.criterion)
            )
    return [figure for figure in figures if figure is not None]


def _other_campaign(questions: "Questions", name: str) -> str | None:
    """The campaign that shares most programs with one; None where none shares any."""
    rows = {row["campaign_id"]: set(row["programs"]) for row in questions.rows("SELECT * FROM campaign")}
    programs = rows.pop(name)
    shared = sorted((-len(programs & rest), campaign) for campaign, rest in rows.items() if programs & rest)
    return shared[0][1] if shared else None


def _pass(arm: Arm, tau: str, counts: Sequence[Counts], options: ComparisonOptions) -> PassRow:
    return PassRow(tau, arm.pattern, pass_estimate(counts, options.k, options.rng, resamples=options.resamples))


def _counts(arm: Arm, tau: str) -> list[Counts]:
    judged = arm.judged.at(tau)
    return [count(judged.verdicts, judged.measurements, run) for run in arm.runs]


def _differences(
    counts: Sequence[Sequence[Counts]], tau: str, tiers: Mapping[str, str], options: ComparisonOptions
) -> list[DifferenceRow]:
    """All problems first, then each tier."""
    parts: dict[str, set[str] | None] = {
        ALL: None,
        **{name: set(problems) for name, problems in members(tiers).items()},
    }
    rows = []
    for tier, problems in parts.items():
        a, b = ([_on(run_counts, problems) for run_counts in arm] for arm in counts)
        estimate = difference(a, b, options.k, options.rng, resamples=options.resamples)
        rows.append(DifferenceRow(tau, tier, estimate, None))
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
        excluded=tuple(p for p in counts.excluded if p in problems),
    )


def _with_adjusted(rows: Sequence[DifferenceRow], method: str) -> tuple[DifferenceRow, ...]:
    p_values = adjusted([row.estimate.p for row in rows], method)
    return tuple(replace(row, adjusted_p=p) for row, p in zip(rows, p_values, strict=True))


def _wins(arms: Arms, options: ComparisonOptions) -> tuple[WinRate, ...]:
    judged = arms.a.judged
    a, b = (
        [speeds(judged.verdicts, judged.measurements, judged.criterion, [run]) for run in arm.runs]
        for arm in (arms.a, arms.b)
    )
    return tuple(win_rate(a, b, reading, options.rng) for reading in READINGS)


def _best(arm: Arm, run: str) -> list[BestRow]:
    judged = arm.judged
    quality = best_curve(*efficiencies(judged.verdicts, judged.measurements, run))
    speed = {
        point.n: point for point in best_curve(*speed_ups(judged.verdicts, judged.measurements, judged.criterion, run))
    }
    return [BestRow(run, point, speed.get(point.n)) for point in quality]


def _slower(arm: Arm, run: str) -> SlowShare:
    return slower_than_all(arm.judged.verdicts, arm.judged.measurements, arm.judged.criterion, run)


def _pool_sizes(arm: Arm) -> list[int]:
    """How many references ranked each program of an arm."""
    return [
        int(v.pool_size[row])
        for v, m in zip(arm.judged.verdicts, arm.judged.measurements, strict=True)
        for row in np.flatnonzero(m.candidate & np.isin(np.array(m.models), arm.runs))
    ]


def _warnings(arms: Arms, options: ComparisonOptions, comparisons: int) -> tuple[str, ...]:
    warnings = [many_comparisons(comparisons, options.adjust)]
    for arm in (arms.a, arms.b):
        judged = arm.judged
        sizes = _pool_sizes(arm)
        warnings += [resolution_warning(sizes, replace(judged.criterion, tau=tau)) for tau in options.taus]
        fit = None if arms.calibration is None else arms.calibration.fit
        arm_measurements = of_models(judged.measurements, arm.runs)
        warnings += warnings_of(arm_measurements, {arm.pattern: judged.criterion}, fit, Variants(options.taus))
    if not arms.one_campaign:
        warnings.append("win rates are excluded: durations of programs are never mapped from one campaign into another")
    return tuple(dict.fromkeys(warning for warning in warnings if warning))
