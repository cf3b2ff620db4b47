"""One flip as text and JSON: the reason before and after, the deciding run, and the references next to it."""

from dataclasses import asdict
from typing import Any

from lapledger.render.amounts import amount, span
from lapledger.render.output import plain, print_line
from lapledger.render.replay_table import status_name
from lapledger.replay.explanations.decisive_runs import Neighbour, Timing
from lapledger.replay.explanations.flips import Change
from lapledger.replay.loading import JudgedCampaign


def show_change(change: Change, before: JudgedCampaign, after: JudgedCampaign) -> None:
    """Prints one flip: its reasons in both arms and the run that turned it."""
    print_line(f"{plain(change.program)}  ({plain(change.model)})  {change.kind}")
    print_line(f"  before  {plain(change.reason_before)}")
    print_line(f"  after   {plain(change.reason_after)}")
    timings = [
        (label, _timing(timing, judgement.criterion.clock))
        for label, timing, judgement in (
            ("before", change.timing_before, before),
            ("after", change.timing_after, after),
        )
        if timing is not None
    ]
    if len(timings) == 2 and timings[0][1] == timings[1][1]:
        timings = [("", timings[0][1])]
    for label, text in timings:
        print_line(f"  timing  {label + ': ' if label else ''}{plain(text)}")


def _timing(timing: Timing, clock: str) -> str:
    """One run as text: its duration, limit and rank, and the references next to it."""
    took = amount(timing.duration, clock)
    if timing.longer_than is not None:
        took = f"killed, above {amount(timing.longer_than, clock)}"
    elif timing.duration is None:
        took = timing.outcome.name.lower()
    text = f"{timing.test}: {took}"
    if timing.limit is not None:
        text += f", limit {span(timing.limit, clock)}"
    elif timing.longer_than is not None and clock != "memory":
        text += f", killed at {amount(timing.hard_limit_ns, clock)}"
    if timing.percentile is None or timing.rank is None:
        return text
    low, high = timing.percentile
    rank = f"{low:.1f}" if low == high else f"{low:.1f} to {high:.1f}"
    k = str(timing.rank[0]) if low == high else f"{timing.rank[0]} to {timing.rank[1]}"
    text += f", percentile {rank} (rank {k} of {2 * timing.references})"
    return f"{text}, {_beside(timing, clock)}"


def _beside(timing: Timing, clock: str) -> str:
    def reference_text(reference: Neighbour) -> str:
        return f"{reference.program.rsplit('/', 1)[-1]} {amount(reference.duration, clock)}"

    faster, slower = timing.next_faster, timing.next_slower
    if faster and slower:
        return f"between {reference_text(faster)} and {reference_text(slower)}"
    if faster:
        return f"slower than the slowest, {reference_text(faster)}"
    return f"faster than the fastest, {reference_text(slower)}" if slower else "no finished reference"


def change_json(change: Change) -> dict[str, Any]:
    """One flip with both timings, in the unit of its clock."""
    plain_change = asdict(change)
    plain_change.update(before=status_name(change.before), after=status_name(change.after), kind=change.kind)
    for name in ("timing_before", "timing_after"):
        timing = getattr(change, name)
        if timing is not None:
            plain_change[name].update(outcome=timing.outcome.name.lower(), percentile=timing.percentile)
    return plain_change
