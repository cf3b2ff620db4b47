"""`lap run`: plan or resume a campaign, and run the executions that the ledger lacks."""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.options import isolation_option, json_option, ledger_option, seed_option, slots_option
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.ledger.questions.queries import Questions
from lapledger.render.output import count, print_json, print_line, print_message
from lapledger.render.terminal import TERMINAL
from lapledger.settings import Settings, read_settings
from lapledger.workflows.session import LedgerWriter, open_writer

if TYPE_CHECKING:
    from lapledger.workflows.execution.plan_campaign import Left, Planned


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@ledger_option
@click.option("--campaign", default=None, metavar="ID", help="Name of the campaign.  [default: after its plan]")
@click.option("--references-only", is_flag=True, help="Run only the references, for a calibration.")
@click.option("--every", type=click.IntRange(1), default=1, metavar="N", help="Run every Nth program of a problem.")
@click.option(
    "--limit",
    default=None,
    metavar="SECONDS",
    help="Hard time limit of one run; 'own': each problem's, else 10 s.  [default: own]",
)
@slots_option
@click.option(
    "--repetitions", type=int, default=None, metavar="N", help="Timed runs per program and test.  [default: 1]"
)
@click.option("--warmups", type=int, metavar="N", help="Warm-up runs, recorded but not scored.  [default: 0]")
@seed_option("the order of runs", default=None)
@isolation_option
@click.option("--submit", is_flag=True, help="Only queue the jobs; `lap worker` processes execute them.")
@click.option("--wait", is_flag=True, help="With --submit: show progress until the campaign is complete.")
@click.option("--dry-run", is_flag=True, help="Print the remaining executions and the estimated time only.")
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
    """Run every program on every test of its problem in a sandbox, in shuffled order.

    Interrupt with Ctrl-C and rerun the same command to resume: stored executions are not repeated.

    \b
    Example:
      lap run --limit 2 --dry-run
      lap run stonegame slidingmax --limit 2
      lap run --campaign main --submit --wait
    """
    from lapledger.workflows.execution.plan_campaign import choose, left_of, plan_campaign

    if wait and not submit:
        raise UserError("--wait needs --submit; without it `lap run` executes the programs itself")
    settings = read_settings(ledger=ledger, **flags)

    def planned(questions: Questions) -> "Planned":
        chosen = choose(questions, problems, references_only=references_only, every=every)
        return plan_campaign(questions, chosen, settings, campaign)

    if dry_run:
        with open_questions(settings.location) as questions:
            left = left_of(questions, planned(questions).plan)
            _show_estimate(left, settings, str(questions.cut), as_json=as_json)
        return
    with open_writer(settings.location, "lap run", TERMINAL) as session:
        if submit:
            _submit(session, planned, wait=wait, as_json=as_json)
        else:
            _run(session, settings, planned, as_json=as_json)


def _submit(session: LedgerWriter, planned: "Callable[[Questions], Planned]", *, wait: bool, as_json: bool) -> None:
    from lapledger.workflows.execution.run_campaign import submit_plan

    with closing(Questions(session.ledger)) as questions:
        plan = planned(questions)
    summary = submit_plan(session, plan, wait=wait)
    cut = str(session.ledger.cut())
    if as_json:
        print_json({"cut": cut, **summary})
    else:
        state = "complete" if summary["closed"] else f"{summary['left']} of {count(summary['works'], 'job')} remaining"
        print_message(f"campaign {summary['campaign']}: {state}; cut {cut}")
    if wait and not summary["closed"]:
        if not summary["interrupted"]:
            print_message("every remaining job failed in the sandbox on each attempt; see `lap doctor`")
        raise click.exceptions.Exit(130 if summary["interrupted"] else 1)


def _run(
    session: LedgerWriter, settings: Settings, planned: "Callable[[Questions], Planned]", *, as_json: bool
) -> None:
    from lapledger.workflows.execution.plan_campaign import left_of
    from lapledger.workflows.execution.run_campaign import alone, run_plan

    with alone(settings.ledger):
        with closing(Questions(session.ledger)) as questions:
            plan = planned(questions)
            left = left_of(questions, plan.plan)
        summary = run_plan(session, plan, left, settings)
    session.admit()
    cut = str(session.ledger.cut())
    if as_json:
        print_json({"cut": cut, **summary})
    else:
        counts = sorted(summary["outcomes"].items())
        outcomes = ", ".join(f"{number} {name}" for name, number in counts) or "nothing to run"
        print_message(
            f"campaign {summary['campaign']}: {outcomes}; {count(summary['left'], 'execution')} remaining; cut {cut}"
        )
    if summary["left"]:
        print_message("Incomplete: rerun the same command to resume.")
        raise click.exceptions.Exit(130 if summary["interrupted"] else 1)


def _show_estimate(left: "Left", settings: Settings, cut: str, *, as_json: bool) -> None:
    seconds = left.estimate_ns / settings.slots / 1e9
    estimate = {
        "campaign": left.campaign,
        "works": left.works,
        "left": len(left.requests),
        "without_stored_duration": left.unknown,
        "slots": settings.slots,
        "estimated_seconds": round(seconds, 1),
    }
    if as_json:
        print_json({"cut": cut, **estimate})
        return
    basis = "stored durations" if left.stored else "0.3 s per run, as no duration is stored yet"
    print_line(f"campaign {left.campaign}: {len(left.requests)} of {count(left.works, 'execution')} remaining")
    if left.requests:
        print_line(f"about {seconds:.0f} s on {count(settings.slots, 'slot')}, from {basis}")
    print_line(f"cut {cut}")
