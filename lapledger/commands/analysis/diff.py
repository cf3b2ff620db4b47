"""`lap diff`: which verdicts differ between two named replays, or two criteria, and the timings that turned them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from lapledger.cli.criterion_options import read_criterion, refuse_source
from lapledger.cli.engine_options import How, engine_options
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.render.amounts import unit_of
from lapledger.render.diff_lines import change_json, show_change
from lapledger.render.output import (
    at_option,
    campaign_option,
    from_option,
    json_option,
    ledger_option,
    plain,
    print_json,
    print_table,
    progress,
    say,
    tell,
)
from lapledger.replay.calibration import Fit
from lapledger.replay.criteria import Criterion
from lapledger.replay.explanations.flips import Change, Judgement, tally, turned
from lapledger.replay.judging.gates import Verdicts
from lapledger.replay.loading import Calibration, Snapshot, load
from lapledger.replay.measurements import ProblemMeasurements
from lapledger.replay.studies.warnings import cautions
from lapledger.settings import read_settings
from lapledger.workflows.judge import Asking, ask, weigh
from lapledger.workflows.session import asking


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One side of a comparison: what it said, at which cut, and what of a stored replay came out differently."""

    judgement: Judgement
    campaign: str
    cut: str
    replay_id: str | None = None
    differences: Sequence[str] = ()
    note: str = ""
    warnings: Sequence[str] = ()


@click.command()
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--criterion-a", "first", default=None, metavar="NAME|FILE", help="A criterion instead of a replay A.")
@click.option("--criterion-b", "second", default=None, metavar="NAME|FILE", help="A criterion instead of a replay B.")
@from_option
@click.option("--limit", default=20, type=click.IntRange(0), help="Flips shown; 0 for all.  [default: 20]")
@engine_options
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    a: str | None,
    b: str | None,
    first: str | None,
    second: str | None,
    source: str | None,
    limit: int,
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    how: How,
) -> None:
    """List the verdicts that differ from A to B, with the run that turned each and the references beside it.

    A and B are names of stored replays (`lap replay --name`), or the starts of their ids. Each is asked again at its
    own cut; where that gives other verdicts than were stored, this is said and the exit code is 1.

    \b
    Example:
      lap diff strict loose
      lap diff --criterion-a top-30 --criterion-b per-test-top-30
    """
    words = _words((a, b), (first, second))
    refuse_source(source, [] if words else [read_criterion(str(one), {})[1] for one in (first, second)])
    with asking(read_settings(ledger=ledger).location, at) as questions:
        through = None
        if words is None:
            before, after = (
                _asked(questions, str(one), campaign, asking=Asking(source=source, how=how)) for one in (first, second)
            )
        else:
            before, after, through = _stored(questions, words, campaign, how=how)
        changes = _turned(before.judgement, after.judgement, through)
    compared = _Compared(before, after, through, changes)
    if as_json:
        print_json(_as_json(compared))
    else:
        _show(compared, limit or len(changes))
    if not _warn(compared, quiet=as_json):
        raise click.exceptions.Exit(1)


def _words(names: tuple[str | None, str | None], criteria: tuple[str | None, str | None]) -> tuple[str, str] | None:
    """The names of two replays, None for two criteria; UserError for anything else."""
    a, b = names
    if a is not None and b is not None and criteria == (None, None):
        return a, b
    if a is None and None not in criteria:
        return None
    raise UserError("name two stored replays, as `lap diff A B`, or two criteria with --criterion-a and --criterion-b")


def _asked(questions: Questions, criterion: str, campaign: str | None, *, asking: Asking) -> _Side:
    snapshot = load(questions, campaign)
    answer = ask(questions, snapshot, *read_criterion(criterion, {}), asking=asking)
    return _Side(answer.judgement, snapshot.name, snapshot.cut, warnings=answer.warnings)


def _stored(
    questions: Questions, words: tuple[str, str], campaign: str | None, *, how: How
) -> tuple[_Side, _Side, str | None]:
    """Both replays asked again at their own cuts, and the calibration that their programs meet through."""
    from lapledger.consumers.derive.named_replay_reader import find_replay, meeting

    if campaign is not None:
        raise UserError("a stored replay names its own campaign; leave --campaign out")
    rows = [find_replay(questions, name) for name in words]
    through = meeting(questions, *rows)
    before, after = (_again(questions, row, how) for row in rows)
    return before, after, through


def _again(questions: Questions, row: dict[str, Any], how: How) -> _Side:
    """A replay asked again at its own cut, with what to be wary of in it."""
    from lapledger.consumers.derive.named_replay_reader import ask_again

    fits: list[Fit] = []

    def judge(
        snapshot: Snapshot, criterion: Criterion, calibration: Calibration | None
    ) -> tuple[Sequence[ProblemMeasurements], Sequence[Verdicts]]:
        fits.extend([calibration.fit] if calibration else [])
        return weigh(snapshot, criterion, calibration, how=how)

    again = ask_again(questions.ledger, questions, row, judge=judge)
    said = Judgement(row["name"], again.criterion, again.measured, again.verdicts)
    warnings = cautions(again.measured, {row["name"]: again.criterion}, fits[0] if fits else None)
    return _Side(said, row["campaign_id"], row["cut"], row["replay_id"], again.differences, again.note, warnings)


def _turned(before: Judgement, after: Judgement, through: str | None) -> list[Change]:
    changes = []
    with progress("comparing", len(before.verdicts)) as bar:
        for found in turned(before, after, through=through):
            changes += found
            bar.advance(bar.task_ids[0])
    return changes


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """Two sides and what differs."""

    before: _Side
    after: _Side
    through: str | None
    changes: Sequence[Change]

    @property
    def only(self) -> tuple[int, int]:
        """Candidates that only one side holds: they are compared with nothing."""
        one, other = (
            {
                (v.problem, v.programs[i])
                for v in side.judgement.verdicts
                for i in range(len(v.programs))
                if v.candidate[i]
            }
            for side in (self.before, self.after)
        )
        return len(one - other), len(other - one)


def _warn(compared: _Compared, *, quiet: bool) -> bool:
    """Says on stderr what a stored replay said differently; whether every one agrees with the facts at its cut."""
    if not quiet:
        tell(dict.fromkeys((*compared.before.warnings, *compared.after.warnings)))
    for side in (compared.before, compared.after):
        name = side.judgement.name
        if side.note:
            say(f"note: replay {name!r}: {side.note}")
        if side.differences:
            count = len(side.differences)
            say(f"WARNING: replay {name!r} is not what the facts at its cut say: {count} differences")
            for line in side.differences[:5]:
                say(f"WARNING:   {plain(line)}")
    return not any(side.differences and not side.note for side in (compared.before, compared.after))


def _show(compared: _Compared, limit: int) -> None:
    before, after, changes = compared.before.judgement, compared.after.judgement, compared.changes
    for change in changes[:limit]:
        show_change(change, before, after)
    if len(changes) > limit:
        say(f"{len(changes) - limit} more flips; --limit 0 shows all of them, --json lists them")
    rows = [*tally(changes)]
    print_table(("model", "flip", "programs"), rows, title=f"{before.name} -> {after.name}: {len(changes)} flips")
    lone = compared.only
    if any(lone):
        click.echo(f"compared with nothing: {lone[0]} candidates only {before.name} holds, {lone[1]} only {after.name}")
    if compared.through:
        click.echo(f"two campaigns, through calibration {compared.through[:12]}")
    for side in (compared.before, compared.after):
        said = side.judgement
        click.echo(f"{said.name}: campaign {side.campaign}, criterion {said.criterion.hash[:12]}, cut {side.cut}")


def _as_json(compared: _Compared) -> dict[str, Any]:
    lone = compared.only
    return {
        "a": _side_json(compared.before),
        "b": _side_json(compared.after),
        "through": compared.through,
        "only_a": lone[0],
        "only_b": lone[1],
        "count": len(compared.changes),
        "tally": [{"model": model, "kind": kind, "count": count} for model, kind, count in tally(compared.changes)],
        "flips": [change_json(change) for change in compared.changes],
    }


def _side_json(side: _Side) -> dict[str, Any]:
    said = side.judgement
    return {
        "name": said.name,
        "replay_id": side.replay_id,
        "campaign": side.campaign,
        "cut": side.cut,
        "criterion": said.criterion.hash,
        "canonical": said.criterion.canonical().decode(),
        "unit": unit_of(said.criterion.clock),
        "differences": list(side.differences),
        "note": side.note,
        "warnings": list(side.warnings),
    }
