"""Speed tables of `lap compare`: win rates, best of N, programs slower than all references, and A/A figures."""

import math
from collections.abc import Sequence

from lapledger.render.intervals import of_shares, percent
from lapledger.render.output import print_line, print_table
from lapledger.replay.estimates import BestOf, SlowShare, WinRate
from lapledger.workflows.analysis.compare import BestRow, Comparison

WINS = (
    "quality metric",
    "problems",
    "samples",
    "wins",
    "losses",
    "ties",
    "undecided",
    "excluded",
    "win rate, %",
    "95% over problems",
    "bootstrap",
    "95% over runs",
    "bounds if undecided",
)
BEST = (
    "run",
    "best of",
    "problems",
    "samples",
    "1 - q",
    "upper bound",
    "speed / median reference",
    "speed upper bound",
    "speed problems",
)


def show_speeds(comparison: Comparison) -> None:
    """Prints a table for each question about speed."""
    if comparison.wins:
        print_table(
            WINS,
            [_win(row) for row in comparison.wins],
            title="win rate: A faster than B, by the speed of a correct sample",
        )
    _show_best(comparison.best)
    _show_slower(comparison)
    _show_same(comparison)


def _win(rate: WinRate) -> tuple[object, ...]:
    return (
        rate.reading,
        rate.problems,
        f"{rate.samples[0]} and {rate.samples[1]}",
        rate.wins,
        rate.losses,
        len(rate.ties),
        len(rate.undecided),
        len(rate.excluded),
        "-" if rate.value is None else percent(rate.value),
        of_shares(rate.interval),
        of_shares(rate.bootstrapped),
        of_shares(rate.over_runs),
        of_shares(rate.bounds),
    )


def _show_best(rows: Sequence[BestRow]) -> None:
    """Quality and speed of the best of N samples, for each training run; for many N the powers of two and the last."""
    most = {row.run: row.quality.n for row in rows}
    shown = [row for row in rows if row.quality.n & (row.quality.n - 1) == 0 or row.quality.n == most[row.run]]
    print_table(BEST, [_best(row) for row in shown], title="best of N samples, failed ones worth 0; --json has every N")


def _best(row: BestRow) -> tuple[object, ...]:
    quality, speed = row.quality, row.speed
    return (
        row.run,
        quality.n,
        quality.problems,
        quality.samples,
        f"{quality.value:.4f}",
        f"{quality.upper_bound:.4f}" if quality.upper_bound > quality.value else "-",
        "-" if speed is None else f"{speed.value:.3f}",
        "-" if speed is None else _speed_at_most(speed),
        "-" if speed is None else speed.problems,
    )


def _speed_at_most(speed: BestOf) -> str:
    if math.isnan(speed.upper_bound):
        return "unknown"
    return f"{speed.upper_bound:.3f}" if speed.upper_bound > speed.value else "-"


def _show_slower(comparison: Comparison) -> None:
    columns = ("run", "problems", "correct", "slower", "undecided", "share, %")
    rows = [(run, *_slow(rate)) for run, rate in comparison.slower.items()]
    print_table(columns, rows, title="correct programs slower in total than every reference")


def _slow(rate: SlowShare) -> tuple[object, ...]:
    return rate.problems, rate.correct, rate.slower, rate.undecided, "-" if rate.value is None else percent(rate.value)


def _show_same(comparison: Comparison) -> None:
    if not comparison.same:
        print_line("A/A baseline: not available, as no program was run in two campaigns or repeated")
        return
    columns = (
        "between",
        "problems",
        "programs",
        "pairs",
        "speed-up",
        "95% over problems",
        "median",
        "95th percentile",
        "maximum",
    )
    rows = [
        (
            rate.between,
            rate.problems,
            rate.programs,
            rate.pairs,
            f"{rate.speedup:.4f}",
            "-" if rate.interval is None else f"{rate.interval[0]:.4f} .. {rate.interval[1]:.4f}",
            f"{rate.usual:.4f}",
            f"{rate.p95:.4f}",
            f"{rate.largest:.4f}",
        )
        for rate in comparison.same
    ]
    print_table(columns, rows, title="A/A baseline: apparent speed-up of identical code")
