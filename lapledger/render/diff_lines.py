"""One flip of a comparison in words and as JSON: why on both sides, the run that turned it, what ran beside it."""

from dataclasses import asdict
from typing import Any

import click

from lapledger.render.amounts import amount, span
from lapledger.render.output import plain
from lapledger.render.replay_table import word
from lapledger.replay.explanations.decisive_runs import Neighbour, Timing
from lapledger.replay.explanations.flips import Change
from lapledger.replay.loading import JudgedCampaign


def show_change(change: Change, before: JudgedCampaign, after: JudgedCampaign) -> None:
    """Prints one flip: its reasons in both arms and the run that turned it."""
    click.echo(f"{plain(change.program)}  ({plain(change.model)})  {change.kind}")
    click.echo(f"  before  {plain(change.reason_before)}")
    click.echo(f"  after   {plain(change.reason_after)}")
    told = [
        (label, _timing(timing, said.criterion.clock))
        for label, timing, said in (("before", change.timing_before, before), ("after", change.timing_after, after))
        if timing is not None
    ]
    if len(told) == 2 and told[0][1] == told[1][1]:
        told = [("", told[0][1])]
    for label, text in told:
        click.echo(f"  timing  {label + ': ' if label else ''}{plain(text)}")


def _timing(timing: Timing, clock: str) -> str:
    """One run in words: what it took, the limit, where it ranks, and the references beside it."""
    took = amount(timing.duration, clock)
    if timing.longer_than is not None:
        took = f"killed, above {amount(timing.longer_than, clock)}"
    elif timing.duration is None:
        took = timing.outcome.name.lower()
    words = f"{timing.test}: {took}"
    if timing.limit is not None:
        words += f", limit {span(timing.limit, clock)}"
    elif timing.longer_than is not None and clock != "memory":
        words += f", killed at {amount(timing.hard_limit_ns, clock)}"
    if timing.percentile is None or timing.rank is None:
        return words
    low, high = timing.percentile
    place = f"{low:.1f}" if low == high else f"{low:.1f} to {high:.1f}"
    k = str(timing.rank[0]) if low == high else f"{timing.rank[0]} to {timing.rank[1]}"
    words += f", percentile {place} (k {k} of {2 * timing.references})"
    return f"{words}, {_beside(timing, clock)}"


def _beside(timing: Timing, clock: str) -> str:
    def one(reference: Neighbour) -> str:
        return f"{reference.program.rsplit('/', 1)[-1]} {amount(reference.duration, clock)}"

    faster, slower = timing.next_faster, timing.next_slower
    if faster and slower:
        return f"between {one(faster)} and {one(slower)}"
    if faster:
        return f"behind {one(faster)}, the slowest"
    return f"ahead of {one(slower)}, the fastest" if slower else "no finished reference beside it"


def change_json(change: Change) -> dict[str, Any]:
    """One flip with both timings, in the unit of each side's clock."""
    found = asdict(change)
    found.update(before=word(change.before), after=word(change.after), kind=change.kind)
    for name in ("timing_before", "timing_after"):
        timing = getattr(change, name)
        if timing is not None:
            found[name].update(outcome=timing.outcome.name.lower(), percentile=timing.percentile)
    return found
