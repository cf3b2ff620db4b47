"""What `lap compare` says of speed: win rates, best of N, programs slower than all references, and A/A figures."""

import math
from collections.abc import Sequence

import click

from lapledger.render.intervals import of_shares, percent
from lapledger.render.output import print_table
from lapledger.replay.estimates import BestOf, SlowShare, WinRate
from lapledger.workflows.analysis.compare import BestRow, Comparison

WINS = (
    "reading",
    "problems",
    "samples",
    "wins",
    "losses",
    "ties",
    "undecided",
    "left out",
    "WR %",
    "95% over problems",
    "bootstrap",
    "95% over runs",
    "if undecided",
)
BEST = (
    "run",
    "best of",
    "problems",
    "samples",
    "1 - q",
    "at most",
    "speed / median reference",
    "speed at most",
    "speed problems",
)


def show_speeds(found: Comparison) -> None:
    """Prints a table for each question about speed."""
    if found.wins:
        print_table(WINS, [_win(row) for row in found.wins], title="A faster than B, by the speed of a correct sample")
    _show_best(found.best)
    _show_slower(found)
    _show_same(found)


def _win(one: WinRate) -> tuple[object, ...]:
    return (
        one.reading,
        one.problems,
        f"{one.samples[0]} and {one.samples[1]}",
        one.wins,
        one.losses,
        len(one.ties),
        len(one.undecided),
        len(one.left_out),
        "-" if one.value is None else percent(one.value),
        of_shares(one.interval),
        of_shares(one.bootstrapped),
        of_shares(one.over_runs),
        of_shares(one.bounds),
    )


def _show_best(rows: Sequence[BestRow]) -> None:
    """Quality and speed of the best of N samples, for each training run; of many N powers of two and the last."""
    most = {row.run: row.quality.n for row in rows}
    shown = [row for row in rows if row.quality.n & (row.quality.n - 1) == 0 or row.quality.n == most[row.run]]
    print_table(BEST, [_best(row) for row in shown], title="Best of N samples, failed ones worth 0; --json has every N")


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


def _show_slower(found: Comparison) -> None:
    columns = ("run", "problems", "correct", "slower", "undecided", "%")
    rows = [(run, *_slow(one)) for run, one in found.slower.items()]
    print_table(columns, rows, title="Correct programs slower in total than every reference")


def _slow(one: SlowShare) -> tuple[object, ...]:
    return one.problems, one.correct, one.slower, one.undecided, "-" if one.value is None else percent(one.value)


def _show_same(found: Comparison) -> None:
    if not found.same:
        click.echo("A/A: no program was run in two campaigns or repeated, so no false speed-up can be told")
        return
    columns = (
        "between",
        "problems",
        "programs",
        "pairs",
        "speed-up",
        "95% over problems",
        "usual",
        "95% below",
        "most",
    )
    rows = [
        (
            one.between,
            one.problems,
            one.programs,
            one.pairs,
            f"{one.speedup:.4f}",
            "-" if one.interval is None else f"{one.interval[0]:.4f} .. {one.interval[1]:.4f}",
            f"{one.usual:.4f}",
            f"{one.p95:.4f}",
            f"{one.largest:.4f}",
        )
        for one in found.same
    ]
    print_table(columns, rows, title="A/A: how much faster the same code seems to be than itself")
