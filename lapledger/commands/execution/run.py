"""`lap run`: plan a campaign or pick it up again, and run what the ledger lacks."""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.ledger.questions.queries import Questions
from lapledger.render.output import print_json, say
from lapledger.render.terminal import TERMINAL
from lapledger.settings import Settings, read_settings
from lapledger.workflows.session import LedgerWriter, open_writer

if TYPE_CHECKING:
    from lapledger.workflows.execution.plan_campaign import Left, Planned


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@ledger_option
@click.option("--campaign", default=None, metavar="ID", help="Name of the campaign.  [default: after its plan]")
@click.option("--references-only", is_flag=True, help="Run only the reference pool, for a calibration.")
@click.option("--every", type=click.IntRange(1), default=1, metavar="N", help="Only each Nth program of a problem.")
@click.option("--limit", type=float, default=None, metavar="SECONDS", help="Hard time limit.  [default: 10]")
@click.option("--slots", type=int, default=None, metavar="N", help="Programs run side by side.")
@click.option(
    "--repetitions", type=int, default=None, metavar="N", help="Timed runs per program and test.  [default: 1]"
)
@click.option("--warmups", type=int, default=None, metavar="N", help="Marked runs before them.  [default: 0]")
@click.option("--seed", type=int, default=None, metavar="N", help="Seed of the shuffled order.  [default: 0]")
@click.option("--isolation", type=click.Choice(["auto", "bubblewrap", "plain"]), default=None, help="[default: auto]")
@click.option("--submit", is_flag=True, help="Only ask for the works: each `lap worker` runs what it can.")
@click.option("--wait", is_flag=True, help="With --submit: show progress until the campaign is closed.")
@click.option("--dry-run", is_flag=True, help="Print the executions left and an estimate of the time; run nothing.")
@json_option
def command(
    problems: tuple[str, ...],
    ledger: str | None,
    campaign: str | None,
    dry_run: bool,
    as_json: bool,
    references_only: bool,
    every: int,
    submit: bool,
    wait: bool,
    **flags: Any,
) -> None:
    """Run every program on every test of its problem, in a sandbox, shuffled together.

    Interrupt with Ctrl-C and run the same command again: what the ledger holds is not run twice.

    \b
    Example:
      lap run --limit 2 --dry-run
      lap run stonegame slidingmax --limit 2
      lap run --campaign main --submit --wait
    """
    from lapledger.workflows.execution.plan_campaign import choose, left_of, plan_campaign

    if wait and not submit:
        raise UserError("--wait belongs to --submit: without it `lap run` runs the programs itself and waits anyway")
    settings = read_settings(ledger=ledger, **flags)

    def planned(questions: Questions) -> "Planned":
        chosen = choose(questions, problems, references_only=references_only, every=every)
        return plan_campaign(questions, chosen, settings, campaign)

    if dry_run:
        with open_questions(settings.location) as questions:
            left = left_of(questions, planned(questions).plan)
            _tell_estimate(left, settings, str(questions.cut), as_json=as_json)
        return
    with open_writer(settings.location, "lap run", TERMINAL) as writer:
        if submit:
            _submit(writer, planned, wait=wait, as_json=as_json)
        else:
            _run(writer, settings, planned, as_json=as_json)


def _submit(writer: LedgerWriter, planned: "Callable[[Questions], Planned]", *, wait: bool, as_json: bool) -> None:
    from lapledger.workflows.execution.run_campaign import submit_plan

    with closing(Questions(writer.ledger)) as questions:
        plan = planned(questions)
    summary = submit_plan(writer, plan, wait=wait)
    cut = str(writer.ledger.cut())
    if as_json:
        print_json({"cut": cut, **summary})
    else:
        state = "closed" if summary["closed"] else f"{summary['left']} of {summary['works']} works left"
        say(f"campaign {summary['campaign']}: {state}; cut {cut}")
    if wait and not summary["closed"]:
        if not summary["interrupted"]:
            say("every work that is left failed in the sandbox each time it was tried; see `lap doctor`")
        raise click.exceptions.Exit(130 if summary["interrupted"] else 1)


def _run(writer: LedgerWriter, settings: Settings, planned: "Callable[[Questions], Planned]", *, as_json: bool) -> None:
    from lapledger.workflows.execution.plan_campaign import left_of
    from lapledger.workflows.execution.run_campaign import alone, run_plan

    with alone(settings.ledger):
        with closing(Questions(writer.ledger)) as questions:
            plan = planned(questions)
            left = left_of(questions, plan.plan)
        summary = run_plan(writer, plan, left, settings)
    writer.admit()
    cut = str(writer.ledger.cut())
    if as_json:
        print_json({"cut": cut, **summary})
    else:
        counts = sorted(summary["outcomes"].items())
        outcomes = ", ".join(f"{count} {name}" for name, count in counts) or "nothing to run"
        say(f"campaign {summary['campaign']}: {outcomes}; {summary['left']} works left; cut {cut}")
    if summary["left"]:
        say("some works have no outcome yet; run the same command again to go on")
        raise click.exceptions.Exit(130 if summary["interrupted"] else 1)


def _tell_estimate(left: "Left", settings: Settings, cut: str, *, as_json: bool) -> None:
    seconds = left.estimate_ns / settings.slots / 1e9
    found = {
        "campaign": left.campaign,
        "works": left.works,
        "left": len(left.requests),
        "without_stored_duration": left.unknown,
        "slots": settings.slots,
        "estimated_seconds": round(seconds, 1),
    }
    if as_json:
        print_json({"cut": cut, **found})
        return
    basis = "stored durations" if left.stored else "0.3 s a run, as nothing is stored yet"
    click.echo(f"campaign {left.campaign}: {len(left.requests)} of {left.works} executions left")
    if left.requests:
        click.echo(f"about {seconds:.0f} s on {settings.slots} slots, from {basis}")
    click.echo(f"cut {cut}")
