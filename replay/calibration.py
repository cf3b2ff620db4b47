"""Calibration: an affine map from stored to fresh durations of references, judged out of fold beside no map at all.

The map is directed, and holds for one clock, estimator and start-up rule. It moves stored references that were not
re-run into a fresh campaign, never a candidate. Which campaigns to calibrate is the caller's choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from replay.criteria import Criterion
from replay.errors import ReplayError
from replay.measurements import ABSENT, Bools, Floats, Ints, Outcome, ProblemMeasurements, durations, read
from replay.ranks import versus

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class AffineFit:
    """fresh = a * stored + b, with its merits where each problem was left out of its own fit; nan when unknown."""

    a: float
    b_ns: float
    pairs: int  # (reference, test) measured in both campaigns
    problems: int
    clock: str  # what the map holds for
    estimator: str
    startup: str
    r2: float = NAN  # out of fold
    error: float = NAN  # median relative error out of fold
    error_unmapped: float = NAN  # the same of no map
    spearman_before: float = NAN  # of stored against fresh reference scores, others unmapped
    spearman_after: float = NAN  # others mapped out of fold
    shift_points: float = NAN  # mean move of a fresh reference's mean percentile when the others are mapped, not re-run
    shift_points_unmapped: float = NAN
    refused: str = ""  # why the map must not be used


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A least-squares line through pairs and the lines with each group left out."""

    a: float
    b: float
    out_a: Floats  # [G] fitted without group g
    out_b: Floats  # [G]

    def out_of_fold(self, x: Floats, group: Ints) -> Floats:
        """Predictions of x [n] by the line that left out its group [n]."""
        return self.out_a[group] * x + self.out_b[group]


def fit_line(x: Floats, y: Floats, group: Ints) -> Line:
    """The least-squares line of y on x [n], and those with each group [n] of 0..G-1 left out; nan without a spread."""
    x_mean, y_mean = x.mean(), y.mean()  # centred sums keep their digits
    dx, dy = x - x_mean, y - y_mean
    parts = np.array([np.bincount(group, weights=w) for w in (np.ones_like(dx), dx, dy, dx * dx, dx * dy)])
    whole = parts.sum(axis=1, keepdims=True)
    n, sx, sy, sxx, sxy = np.concatenate([whole, whole - parts], axis=1)
    spread = n * sxx - sx * sx
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(spread > 1e-12 * whole[3] * whole[0], (n * sxy - sx * sy) / spread, np.nan)
        b = (sy - a * sx) / n + y_mean - a * x_mean
    return Line(float(a[0]), float(b[0]), a[1:], b[1:])


def fit_affine(
    stored: Sequence[ProblemMeasurements], fresh: Sequence[ProblemMeasurements], criterion: Criterion
) -> AffineFit:
    """The map from stored to fresh durations in ns, fitted on the references measured in both campaigns.

    Least squares over the optimization tests, pairs that finished on both sides; problems, programs and tests match by
    id. Refused, with the reason: fewer than 3 pairs or 2 problems, a <= 0, or no gain over no map, out of fold, in
    relative error or in percentile points. ReplayError when a problem appears twice on one side.
    """
    old, new = _by_problem(stored), _by_problem(fresh)
    matches = [_match(old[name], new[name], criterion) for name in new if name in old]
    matches = [match for match in matches if match.both.any()]
    x = np.concatenate([match.stored[match.both] for match in matches]) if matches else np.zeros(0)
    y = np.concatenate([match.fresh[match.both] for match in matches]) if matches else np.zeros(0)
    group = np.repeat(np.arange(len(matches)), [int(match.both.sum()) for match in matches])
    of = (criterion.clock, criterion.estimator, criterion.startup)
    if len(x) < 3 or len(matches) < 2:
        reason = f"{len(x)} pairs on {len(matches)} problems: at least 3 on 2 are needed"
        return AffineFit(NAN, NAN, len(x), len(matches), *of, refused=reason)
    line = fit_line(x, y, group)
    fit = AffineFit(line.a, line.b, len(x), len(matches), *of)
    if not np.isfinite([line.a, *line.out_a]).all():
        return replace(fit, refused="the stored durations do not differ without one of the problems")
    r2, error, unmapped = _errors(x, y, line.out_of_fold(x, group))
    before, after, shift, shift_unmapped = _rankings(matches, line)
    fit = replace(fit, r2=r2, error=error, error_unmapped=unmapped, spearman_before=before, spearman_after=after)
    fit = replace(fit, shift_points=shift, shift_points_unmapped=shift_unmapped)
    return replace(fit, refused=_refusal(fit))


def apply(fit: AffineFit, stored_ns: Ints) -> Ints:
    """Mapped durations in whole ns, at least 1, of the shape given. ReplayError when the fit is refused."""
    if fit.refused:
        raise ReplayError(f"calibration refused ({fit.refused}); judge with calibration 'none'")
    mapped: Ints = np.maximum(np.rint(fit.a * stored_ns + fit.b_ns), 1).astype(np.int64)
    return mapped


def with_stored(fresh: ProblemMeasurements, stored: ProblemMeasurements, fit: AffineFit) -> ProblemMeasurements:
    """The fresh problem with the stored references that were not re-run added to its pool, durations mapped.

    They have one repetition on the fit's clock, no start-up left to subtract, and are never candidates. Of a killed run
    the bound is mapped, and is its limit from then on; a bound of 0 tells nothing and stays. Tests the stored campaign
    lacks are MISSING. ReplayError when the fit is refused.
    """
    criterion = Criterion(clock=fit.clock, estimator=fit.estimator, startup=fit.startup)
    known = set(fresh.programs)
    rows = [i for i in np.flatnonzero(stored.reference).tolist() if stored.programs[i] not in known]
    readings = read(stored, criterion)
    outcome = _columns(stored, fresh, readings.outcome[rows], Outcome.MISSING)
    killed = readings.outcome == Outcome.TIME_LIMIT
    unknown = np.where(killed, readings.bound_ns == 0, readings.duration_ns == ABSENT)
    mapped = np.where(unknown, ABSENT, apply(fit, np.where(killed, readings.bound_ns, readings.duration_ns)))
    limit = np.where(stored.limit_ns == ABSENT, ABSENT, apply(fit, stored.limit_ns))
    # the killed repetition is read as the limit: with the hard limit there, more would be known than was ever seen
    limit = np.where(killed, np.maximum(mapped, 0), limit)
    repetitions = np.full((*outcome.shape, max(fresh.wall_ns.shape[2], 1)), ABSENT, dtype=np.int64)
    absent = repetitions.copy()
    repetitions[:, :, 0] = _columns(stored, fresh, mapped[rows], ABSENT)
    on = {clock: repetitions if clock == fit.clock else absent for clock in ("wall", "cpu", "memory")}
    remembered = fresh.memory_bytes is not None or fit.clock == "memory"
    return replace(
        fresh,
        programs=fresh.programs + tuple(stored.programs[i] for i in rows),
        makers=fresh.makers + tuple(stored.makers[i] for i in rows),
        labels=fresh.labels + tuple(stored.labels[i] for i in rows),
        candidate=np.append(fresh.candidate, np.zeros(len(rows), dtype=np.bool_)),
        reference=np.append(fresh.reference, np.ones(len(rows), dtype=np.bool_)),
        duplicate=np.append(fresh.duplicate, stored.duplicate[rows]),
        outcome=np.concatenate([fresh.outcome, outcome]),
        wall_ns=_below(fresh.wall_ns, on["wall"]),
        cpu_ns=_below(fresh.cpu_ns, on["cpu"]),
        memory_bytes=_below(fresh.on_clock("memory"), on["memory"]) if remembered else None,
        startup_ns=np.concatenate([fresh.startup_ns, np.zeros(outcome.shape, dtype=np.int64)]),
        limit_ns=np.concatenate([fresh.limit_ns, _columns(stored, fresh, limit[rows], ABSENT)]),
        interface=None if fresh.interface is None else np.append(fresh.interface, np.full(len(rows), -1, np.int8)),
    )


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation of x and y [n] with averaged ties; nan when one of them does not vary."""
    ranks = [versus(v[:, None], v[None, :]).sum(axis=1, dtype=np.float64) for v in (x, y)]
    dx, dy = (rank - rank.mean() if rank.size else rank for rank in ranks)
    scale = float(np.sqrt((dx * dx).sum() * (dy * dy).sum()))
    return float((dx * dy).sum() / scale) if scale > 0 else NAN


@dataclass(frozen=True, slots=True, eq=False)
class _Match:
    """References of one problem measured in both campaigns: n references, t tests, N in the stored pool."""

    stored: Floats  # [n, t] ns
    fresh: Floats  # [n, t]
    both: Bools  # [n, t] finished on both sides
    pool: Floats  # [N, t] stored durations of all stored references, nan where not finished
    others: Bools  # [n, N] neither the program nor its duplicate
    pool_rows: Ints  # [n] where each reference stands in the pool


def _match(stored: ProblemMeasurements, fresh: ProblemMeasurements, criterion: Criterion) -> _Match:
    shared = [t for t in fresh.tests.ids if t in set(stored.tests.ids)]
    kept = [t for t in shared if fresh.tests.optimization[fresh.tests.ids.index(t)]]
    pool_ids = [stored.programs[i] for i in np.flatnonzero(stored.reference)]
    rerun = {fresh.programs[i] for i in np.flatnonzero(fresh.reference)}
    place = np.array([j for j, name in enumerate(pool_ids) if name in rerun], dtype=np.int64)
    pool = _finished(stored, criterion, pool_ids, kept)
    again = _finished(fresh, criterion, [pool_ids[j] for j in place], kept)
    duplicate = stored.duplicate[stored.reference]
    others = duplicate[place][:, None] != duplicate[None, :]
    return _Match(pool[place], again, ~np.isnan(pool[place] + again), pool, others, place)


def _finished(m: ProblemMeasurements, criterion: Criterion, programs: list[str], tests: list[str]) -> Floats:
    """Durations in ns of the programs on the tests, nan where a run did not finish right."""
    read_ns = durations(m, criterion)
    values = np.where((m.outcome == Outcome.OK) & (read_ns != ABSENT), read_ns, np.nan)
    rows, columns = {p: i for i, p in enumerate(m.programs)}, {t: i for i, t in enumerate(m.tests.ids)}
    picked = values[[rows[p] for p in programs], :] if programs else values[:0]
    return picked[:, [columns[t] for t in tests]]


def _by_problem(measurements: Sequence[ProblemMeasurements]) -> dict[str, ProblemMeasurements]:
    found = {m.problem: m for m in measurements}
    if len(found) < len(measurements):
        raise ReplayError("calibration: a problem appears twice in one campaign; give each problem once")
    return found


def _errors(x: Floats, y: Floats, predicted: Floats) -> tuple[float, float, float]:
    """R^2, median relative error, and the median relative error of no map."""
    left = float(((y - predicted) ** 2).sum())
    spread = float(((y - y.mean()) ** 2).sum())
    errors = [float(np.median(np.abs(guess - y) / np.maximum(y, 1))) for guess in (predicted, x)]
    return 1 - left / spread if spread > 0 else NAN, errors[0], errors[1]


def _rankings(matches: list[_Match], line: Line) -> tuple[float, float, float, float]:
    """Spearman of stored against fresh scores, others unmapped and mapped, and how far percentiles move by either."""
    columns: list[tuple[Floats, ...]] = []
    for g, match in enumerate(matches):
        mapped = line.out_a[g] * match.pool + line.out_b[g]
        among = match.others[:, match.pool_rows]
        columns.append(
            (
                _scores(match.stored, match.both, match.pool, match.others),
                _scores(match.fresh, match.both, match.pool, match.others),
                _scores(match.fresh, match.both, mapped, match.others),
                _scores(match.fresh, match.both, match.fresh, among),
                _scores(match.fresh, match.both, match.pool[match.pool_rows], among),
                _scores(match.fresh, match.both, mapped[match.pool_rows], among),
            )
        )
    old, before, after, rerun, unmapped, mapped = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    seen, moved = ~np.isnan(old), ~np.isnan(rerun + unmapped + mapped)
    shifts = [_mean_shift(scores[moved], rerun[moved]) for scores in (mapped, unmapped)]
    return spearman(old[seen], before[seen]), spearman(old[seen], after[seen]), shifts[0], shifts[1]


def _scores(mine: Floats, valid: Bools, pool: Floats, others: Bools) -> Floats:
    """Mean over the valid tests of the percentile / 100 among the others' finished durations [n]; nan without any."""
    size = others.astype(np.int64) @ (~np.isnan(pool)).astype(np.int64)  # [n, t]
    pairwise = versus(mine[:, None, :], pool[None, :, :]) * others[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ranks = np.where(valid & (size > 0), pairwise.sum(axis=1, dtype=np.int64) / (2 * size), 0)
        return np.asarray(ranks.sum(axis=1) / (valid & (size > 0)).sum(axis=1))


def _mean_shift(scores: Floats, truth: Floats) -> float:
    return float(100 * np.abs(scores - truth).mean()) if len(scores) else NAN


def _refusal(fit: AffineFit) -> str:
    if fit.a <= 0:
        return f"slope {fit.a:.3g} is not positive"
    if not fit.error < fit.error_unmapped:
        return f"out of fold its median relative error {fit.error:.3g} does not beat {fit.error_unmapped:.3g} of no map"
    if fit.shift_points > fit.shift_points_unmapped:
        points = f"{fit.shift_points:.3g} percentile points, {fit.shift_points_unmapped:.3g} without a map"
        return f"out of fold it misplaces references by {points}"
    return ""


def _columns(
    stored: ProblemMeasurements, fresh: ProblemMeasurements, values: npt.NDArray[Any], absent: int
) -> npt.NDArray[Any]:
    """Stored values [n, stored tests] in the order of the fresh tests; `absent` for tests that were not stored."""
    place = {test: i for i, test in enumerate(stored.tests.ids)}
    index = [place.get(test, len(place)) for test in fresh.tests.ids]
    return np.pad(values, ((0, 0), (0, 1)), constant_values=absent)[:, index]


def _below(upper: Ints, lower: Ints) -> Ints:
    """Repetitions of two sets of programs, one below the other, padded to the same number."""
    missing = lower.shape[2] - upper.shape[2]
    return np.concatenate([np.pad(upper, ((0, 0), (0, 0), (0, missing)), constant_values=ABSENT), lower])
