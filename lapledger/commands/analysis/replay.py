"""`lap replay`: re-evaluate stored results under one criterion or two, without running programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options, refuse_source
from lapledger.cli.engine_options import engine_options
from lapledger.cli.naming_options import naming_options, store_if_wanted
from lapledger.cli.options import at_option, campaign_option, from_option, json_option, ledger_option
from lapledger.ledger.atomic_write import write_atomically
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.named_replay_table import show_preview, show_replays
from lapledger.render.output import print_json, print_message
from lapledger.render.replay_table import as_json as table_json
from lapledger.render.replay_table import show, show_flips
from lapledger.render.terminal import TERMINAL
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import JudgedCampaign, load
from lapledger.replay.measurements import CLOCKS
from lapledger.settings import read_settings
from lapledger.workflows.analysis.criterion_arguments import read_criterion
from lapledger.workflows.analysis.named_replays import Naming, preview, stored_replays
from lapledger.workflows.analysis.named_replays import as_json as replay_json
from lapledger.workflows.analysis.replay_campaign import (
    at_taus,
    flips_between,
    judge_criteria,
    known_models,
    tau_picture,
)
from lapledger.workflows.malloc import keep_freed_memory


@click.command()
@criterion_options(tau=False)
@click.option(
    "--tau",
    "taus",
    multiple=True,
    metavar="PERCENT",
    help="p_tau threshold; repeat for several rows.  [default: the criterion's]",
)
@click.option(
    "--against",
    default=None,
    metavar="NAME|FILE",
    help="Second criterion: count verdict flips.",
)
@click.option("--flips", "name_flips", is_flag=True, help="List every program whose verdict flips.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="Judge only the programs of this model; repeat.",
)
@click.option("--k", default=1, type=click.IntRange(1), help="k of pass@k.  [default: 1]")
@from_option
@click.option("--plot", default=None, metavar="FILE", type=click.Path(), help="Plot pass@1 against tau (.png or .svg).")
@naming_options
@engine_options
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    criterion_flags: CriterionFlags,
    taus: tuple[str, ...],
    against: str | None,
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Re-evaluate stored results: which programs are correct and among the fastest tau percent. Nothing is executed.

    With --name the result is stored as an event, with its reason and the verdicts that it flips: see `lap diff`.

    \b
    Example:
      lap replay --tau 100 --tau 50 --tau 30
      lap replay --criterion top-30 --against per-test-top-30 --flips
      lap replay --plot curve.png
      lap replay --criterion top-30 --name strict --reason "the paper's default" --store
    """
    keep_freed_memory()
    location = read_settings(ledger=ledger).location
    if rest["listing"] and (
        given := [flag for flag, value in _beside(rest, criterion_flags, taus, against) if value is not None]
    ):
        raise UserError(f"--list shows what is stored and evaluates nothing; omit {', '.join(given)}")
    criteria_count = max(len(taus), 1) + (against is not None)
    stated = (rest.pop(name) for name in ("name", "reason", "store", "previous"))
    naming = Naming.of(*stated, criteria=criteria_count, every_model=not rest["models"])
    if rest.pop("listing"):
        with open_questions(location, at) as questions:
            stored = stored_replays(questions)
        if as_json:
            print_json({"cut": stored.cut, "replays": stored.rows})
        else:
            show_replays(stored)
        return
    name_flips, plot = rest.pop("name_flips"), rest.pop("plot")
    k, source, engine = rest.pop("k"), rest.pop("source"), rest.pop("engine")
    criteria = at_taus(*criterion_flags.read(), taus)
    if against is not None:
        criteria.append(read_criterion(against, {}))
    _check(criteria, source=source, alone=name_flips and naming is None)
    needed = frozenset().union(*(criterion.clocks for _, criterion in criteria))
    clocks = CLOCKS if naming else needed  # flips may concern any other
    with open_questions(location, at) as questions:
        snapshot = load(questions, campaign, clocks=clocks)
        models = known_models(snapshot, rest.pop("models"))
        judged = judge_criteria(
            questions, snapshot, criteria, source=source, k=k, engine=engine, models=models, reporter=TERMINAL
        )
        if plot:
            draw(judged[0], Path(plot))
        flipped = flips_between(judged)
        named = preview(questions, judged[0], naming) if naming else None
    if not as_json:
        show(judged)
        for flips in flipped:
            show_flips(*flips, name_flips=name_flips)
        if named:
            show_preview(named, name_flips=name_flips)
    stored_now = named is not None and store_if_wanted(location, named, quiet=as_json)
    if as_json:
        replay = {"replay": replay_json(named, stored=stored_now)} if named else {}
        print_json({**table_json(judged, flipped), **replay})


def _check(criteria: Sequence[tuple[str, Criterion]], *, source: str | None, alone: bool) -> None:
    """Nothing; UserError for a flag that the questions leave nothing to do; `alone`: --flips are between them only."""
    if alone and len(criteria) < 2:
        raise UserError("--flips compares two criteria; add --against, a second --tau, or --name")
    refuse_source(source, [criterion for _, criterion in criteria])


def _beside(
    rest: Mapping[str, Any], criterion: CriterionFlags, taus: Sequence[str], against: str | None
) -> list[tuple[str, object]]:
    """The flags of a question with their values, None where they are not given."""
    flags = (
        ("--name", rest["name"]),
        ("--reason", rest["reason"]),
        ("--store/--preview", rest["store"]),
        ("--previous", rest["previous"]),
    )
    question = (
        ("--criterion", criterion.source),
        ("--tau", taus or None),
        ("--against", against),
        ("--plot", rest["plot"]),
        ("--model", rest["models"] or None),
    )
    return [*flags, *question, ("--flips", rest["name_flips"] or None), ("--calibration-from", rest["source"])]


def draw(judged: JudgedCampaign, path: Path) -> None:
    """Writes the picture of pass@1 against tau; UserError when the file's ending is not .png or .svg."""
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise UserError(f"--plot {path}: unknown format; end the name in .png or .svg")
    write_atomically(path, tau_picture(judged, kind))  # type: ignore[arg-type]
    print_message(f"wrote {path}")
