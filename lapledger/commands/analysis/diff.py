"""`lap diff`: which verdicts differ between two named replays, or two criteria, and the timings that turned them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from lapledger.cli.criterion_options import refuse_source
from lapledger.cli.engine_options import engine_options
from lapledger.cli.options import at_option, campaign_option, from_option, json_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.ledger.questions.queries import Questions
from lapledger.render.diff_lines import change_json, show_change
from lapledger.render.output import (
    count,
    plain,
    print_json,
    print_line,
    print_message,
    print_table,
    print_warnings,
    progress,
)
from lapledger.render.terminal import TERMINAL
from lapledger.replay.engines import Engine
from lapledger.replay.explanations.flips import Change, tally, verdict_changes
from lapledger.replay.loading import JudgedCampaign, load
from lapledger.replay.measurements import unit_of
from lapledger.settings import read_settings
from lapledger.workflows.analysis.criterion_arguments import read_criterion
from lapledger.workflows.analysis.judge import judge_with_progress


@dataclass(frozen=True, slots=True, eq=False)
class _Arm:
    """One arm of a comparison, and of a stored replay what came out differently."""

    judged: JudgedCampaign
    replay_id: str | None = None
    differences: Sequence[str] = ()
    note: str = ""


@click.command()
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--criterion-a", "first", default=None, metavar="NAME|FILE", help="Criterion in place of replay A.")
@click.option("--criterion-b", "second", default=None, metavar="NAME|FILE", help="Criterion in place of replay B.")
@from_option
@click.option(
    "--limit-rows",
    "rows",
    default=20,
    type=click.IntRange(0),
    metavar="N",
    help="Most flips to show; 0: all.  [default: 20]",
)
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
    rows: int,
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    engine: Engine,
) -> None:
    """List the verdicts that differ between A and B, with the deciding run of each and its neighbouring references.

    A and B are names of stored replays (`lap replay --name`), or the starts of their ids. Each is re-evaluated at its
    own cut; where the result differs from what was stored, this is reported and the exit code is 1.

    \b
    Example:
      lap diff strict loose
      lap diff --criterion-a top-30 --criterion-b per-test-top-30
    """
    names = _names((a, b), (first, second))
    refuse_source(source, [] if names else [read_criterion(str(name), {})[1] for name in (first, second)])
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        through = None
        if names is None:
            before, after = (
                _judge(questions, str(name), campaign, source=source, engine=engine) for name in (first, second)
            )
        else:
            before, after, through = _stored(questions, names, campaign, engine=engine)
        changes = _turned(before.judged, after.judged, through)
    compared = _Compared(before, after, through, changes)
    if as_json:
        print_json(_as_json(compared))
    else:
        _show(compared, rows or len(changes))
    if not _warn(compared, quiet=as_json):
        raise click.exceptions.Exit(1)


def _names(names: tuple[str | None, str | None], criteria: tuple[str | None, str | None]) -> tuple[str, str] | None:
    """The names of two replays, None for two criteria; UserError for anything else."""
    a, b = names
    if a is not None and b is not None and criteria == (None, None):
        return a, b
    if a is None and None not in criteria:
        return None
    raise UserError("give two stored replays, as `lap diff A B`, or two criteria with --criterion-a and --criterion-b")


def _judge(questions: Questions, criterion: str, campaign: str | None, *, source: str | None, engine: Engine) -> _Arm:
    snapshot, (name, read) = load(questions, campaign), read_criterion(criterion, {})
    return _Arm(
        judge_with_progress(questions, snapshot, read, name=name, source=source, engine=engine, reporter=TERMINAL)
    )


def _stored(
    questions: Questions, names: tuple[str, str], campaign: str | None, *, engine: Engine
) -> tuple[_Arm, _Arm, str | None]:
    """Both replays judged again at their own cuts, and the calibration that their programs meet through."""
    from lapledger.consumers.derive.named_replay_reader import find_replay, shared_calibration

    if campaign is not None:
        raise UserError("a stored replay names its own campaign; omit --campaign")
    rows = [find_replay(questions, name) for name in names]
    through = shared_calibration(questions, *rows)
    before, after = (_check(questions, row, engine) for row in rows)
    return before, after, through


def _check(questions: Questions, row: dict[str, Any], engine: Engine) -> _Arm:
    """A replay judged again at its own cut, with what differs from what was stored."""
    from lapledger.consumers.derive.named_replay_reader import check_replay

    checked = check_replay(questions.ledger, questions, row, engine=engine)
    return _Arm(checked.judged, row["replay_id"], checked.differences, checked.note)


def _turned(before: JudgedCampaign, after: JudgedCampaign, through: str | None) -> list[Change]:
    changes = []
    with progress("comparing", len(before.verdicts)) as bar:
        for flips in verdict_changes(before, after, through=through):
            changes += flips
            bar.advance(bar.task_ids[0])
    return changes


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """Two arms and what differs."""

    before: _Arm
    after: _Arm
    through: str | None
    changes: Sequence[Change]

    @property
    def only(self) -> tuple[int, int]:
        """Candidates that only one arm holds: they are compared with nothing."""
        a, b = (
            {(v.problem, v.programs[i]) for v in arm.judged.verdicts for i in range(len(v.programs)) if v.candidate[i]}
            for arm in (self.before, self.after)
        )
        return len(a - b), len(b - a)


def _warn(compared: _Compared, *, quiet: bool) -> bool:
    """Whether every stored replay matches the data at its cut; differences are reported on stderr."""
    if not quiet:
        print_warnings(dict.fromkeys((*compared.before.judged.warnings, *compared.after.judged.warnings)))
    for arm in (compared.before, compared.after):
        name = arm.judged.name
        if arm.note:
            print_message(f"note: replay {name!r}: {arm.note}")
        if arm.differences:
            number = len(arm.differences)
            print_message(
                f"WARNING: replay {name!r} no longer matches the data at its cut: {count(number, 'difference')}"
            )
            for line in arm.differences[:5]:
                print_message(f"WARNING:   {plain(line)}")
    return not any(arm.differences and not arm.note for arm in (compared.before, compared.after))


def _show(compared: _Compared, limit: int) -> None:
    before, after, changes = compared.before.judged, compared.after.judged, compared.changes
    for change in changes[:limit]:
        show_change(change, before, after)
    if len(changes) > limit:
        print_message(f"{count(len(changes) - limit, 'more flip')}; --limit-rows 0 shows all, --json lists them")
    rows = [*tally(changes)]
    print_table(
        ("model", "flip", "programs"), rows, title=f"{before.name} -> {after.name}: {count(len(changes), 'flip')}"
    )
    unmatched = compared.only
    if any(unmatched):
        candidates = count(unmatched[0], "candidate")
        print_line(f"not compared: {candidates} only in {before.name}, {unmatched[1]} only in {after.name}")
    if compared.through:
        print_line(f"two campaigns, compared by calibration {compared.through[:12]}")
    for arm in (compared.before, compared.after):
        judged = arm.judged
        print_line(
            f"{judged.name}: campaign {judged.campaign}, criterion {judged.criterion.hash[:12]}, cut {judged.cut}"
        )


def _as_json(compared: _Compared) -> dict[str, Any]:
    unmatched = compared.only
    return {
        "a": _arm_json(compared.before),
        "b": _arm_json(compared.after),
        "through": compared.through,
        "only_a": unmatched[0],
        "only_b": unmatched[1],
        "count": len(compared.changes),
        "tally": [{"model": model, "kind": kind, "count": number} for model, kind, number in tally(compared.changes)],
        "flips": [change_json(change) for change in compared.changes],
    }


def _arm_json(arm: _Arm) -> dict[str, Any]:
    judged = arm.judged
    return {
        "name": judged.name,
        "replay_id": arm.replay_id,
        "campaign": judged.campaign,
        "cut": judged.cut,
        "criterion": judged.criterion.hash,
        "canonical": judged.criterion.canonical().decode(),
        "unit": unit_of(judged.criterion.clock),
        "differences": list(arm.differences),
        "note": arm.note,
        "warnings": list(judged.warnings),
    }
