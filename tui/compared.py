"""What `lap compare` says: one table for each question, with intervals and bounds in columns of their own."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from replay.estimates import Interval, SlowShare, WinRate
from replay.estimates.multiple import METHODS
from tui.comparing import Asked, BestRow, Comparison, DifferenceRow, PassRow
from tui.output import print_table, say
from tui.sides import Sides

PASSES = (
    "tau",
    "side",
    "runs",
    "problems",
    "samples",
    "pass@{k} %",
    "95% over problems",
    "bootstrap",
    "two-stage",
    "95% over runs",
    "at most %",
)
DIFFERENCES = (
    "tau",
    "tier",
    "problems",
    "A %",
    "B %",
    "A - B, points",
    "95% over problems",
    "bootstrap",
    "95% over runs",
    "if undecided",
    "gain %",
    "95% of gain",
    "p",
    "{method} p",
)
WINS = (
    "reading",
    "problems",
    "samples",
    "wins",
    "losses",
    "ties",
    "left out",
    "WR %",
    "95% over problems",
    "bootstrap",
)
NAMED = 8
"""Problems that are named in a line; JSON names all."""


def as_json(sides: Sides, asked: Asked, found: Comparison, followed: str) -> dict[str, Any]:
    """All that the tables show and more, as plain data; shares in [0, 1]."""
    criterion = sides.a.judged.criterion
    return {
        "cut": sides.a.judged.snapshot.cut,
        "a": {"word": sides.a.word, "runs": sides.a.runs, "campaign": sides.a.campaign},
        "b": {"word": sides.b.word, "runs": sides.b.runs, "campaign": sides.b.campaign},
        "criterion": {"hash": criterion.hash, "canonical": criterion.canonical().decode()},
        "calibration": None if sides.calibration is None else sides.calibration.calibration_id,
        "through": sides.through,
        "tiers": followed,
        **asdict(asked),
        **asdict(found),
    }


def show(sides: Sides, asked: Asked, found: Comparison, followed: str) -> None:
    """Prints every table, then what was left out, and the warnings on stderr."""
    cut = sides.a.judged.snapshot.cut
    where = sides.a.campaign if sides.one_campaign else f"{sides.a.campaign} and {sides.b.campaign}"
    title = f"A = {sides.a.word}, B = {sides.b.word}: campaign {where}"
    print_table([c.format(k=asked.k) for c in PASSES], [_pass(row) for row in found.passes], title=title)
    columns = [c.format(method=METHODS[asked.adjust]) for c in DIFFERENCES]
    print_table(columns, [_difference(row) for row in found.differences], title=f"A - B in pairs; {followed}")
    if found.wins:
        print_table(WINS, [_win(row) for row in found.wins], title="A faster than B, by the speed of a correct sample")
    _show_best(found.best)
    _show_slower(found)
    _show_same(found)
    click.echo(f"criterion {sides.a.judged.criterion.hash[:12]}, seed {asked.seed}, {asked.resamples} resamples")
    if sides.through:
        click.echo(sides.through)
    click.echo(f"cut {cut}")
    for line in (*_named(found), *(f"warning: {one}" for one in found.warnings)):
        say(line)


def _pass(row: PassRow) -> tuple[object, ...]:
    one = row.estimate
    return (
        row.tau,
        row.side,
        len(one.runs),
        one.problems,
        one.samples,
        _percent(one.value),
        f"{_interval(one.over_problems)}{' w' if one.method == 'wilson' and one.over_problems else ''}",
        _interval(one.bootstrapped),
        _interval(one.two_stage),
        _interval(one.over_runs),
        _percent(one.upper_bound) if one.upper_bound > one.value else "-",
    )


def _difference(row: DifferenceRow) -> tuple[object, ...]:
    one = row.found
    low, high = one.bounds
    return (
        row.tau,
        row.tier,
        one.problems,
        _percent(one.a),
        _percent(one.b),
        _percent(one.difference),
        _interval(one.over_problems),
        _interval(one.bootstrapped),
        _interval(one.over_runs),
        _interval(one.bounds) if low < high else "-",
        "-" if one.gain is None else _percent(one.gain),
        _interval(one.gain_interval),
        _p(one.p),
        _p(row.adjusted_p),
    )


def _win(one: WinRate) -> tuple[object, ...]:
    return (
        one.reading,
        one.problems,
        f"{one.samples[0]} and {one.samples[1]}",
        one.wins,
        one.losses,
        len(one.ties),
        len(one.left_out),
        "-" if one.value is None else _percent(one.value),
        _interval(one.interval),
        _interval(one.bootstrapped),
    )


def _show_best(rows: Sequence[BestRow]) -> None:
    """Quality and speed of the best of N samples, for each training run."""
    cells = [
        (
            row.run,
            row.quality.n,
            row.quality.problems,
            row.quality.samples,
            f"{row.quality.value:.4f}",
            f"{row.quality.upper_bound:.4f}" if row.quality.upper_bound > row.quality.value else "-",
            "-" if row.speed is None else f"{row.speed.value:.3f}",
        )
        for row in rows
    ]
    columns = ("run", "best of", "problems", "samples", "1 - q", "at most", "speed / median reference")
    print_table(columns, cells, title="Best of N samples, failed ones worth 0")


def _show_slower(found: Comparison) -> None:
    columns = ("run", "problems", "correct", "slower", "undecided", "%")
    rows = [(run, *_slow(one)) for run, one in found.slower.items()]
    print_table(columns, rows, title="Correct programs slower in total than every reference")


def _slow(one: SlowShare) -> tuple[object, ...]:
    return one.problems, one.correct, one.slower, one.undecided, "-" if one.value is None else _percent(one.value)


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


def _named(found: Comparison) -> list[str]:
    """Problems that were left out of the differences, and ties and problems left out of the win rates."""
    lines = []
    gone = sorted({problem for row in found.differences for problem in row.found.left_out})
    if gone:
        lines.append(f"left out, as one side lacks them or the filter keeps no test: {_some(gone)}")
    lines += [f"ties by the {one.reading}: {_some(one.ties)}" for one in found.wins if one.ties]
    if found.wins and found.wins[0].left_out:
        lines.append(f"no win or loss, as one side has no correct sample: {_some(found.wins[0].left_out)}")
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more; --json names all" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _interval(found: Interval | None) -> str:
    return "-" if found is None else f"{100 * found[0]:.1f} .. {100 * found[1]:.1f}"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
