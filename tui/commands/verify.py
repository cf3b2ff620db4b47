"""`lap verify`: prove the ledger's bytes and compute every reward again."""

from pathlib import Path

import click

from ledger.errors import UserError
from ledger.proof import Written, verify
from ledger.store.cuts import Cut
from tui.output import json_option, ledger_option, print_json, progress, say
from tui.session import asking
from tui.settings import read_settings


@click.command()
@click.option(
    "--head", default=None, metavar="HEAD", help="A head that was written down: was anything before it changed?"
)
@click.option("--at", "at", default=None, metavar="CUT", help="The cut that was printed beside --head.")
@ledger_option
@json_option
def command(head: str | None, at: str | None, ledger: str | None, as_json: bool) -> None:
    """Prove what was admitted and compute every reward again. Exit code 1 when anything is wrong.

    Write the printed head and cut down elsewhere: given back later, they prove that nothing up to them was changed.

    \b
    Example:
      lap verify --json
    """
    if (head is None) != (at is None):
        raise UserError("--head and --at belong together: give both as they were printed")
    written = Written(Cut.parse(at), head) if head is not None and at is not None else None
    prove(read_settings(ledger=ledger).ledger, written, as_json=as_json, with_rewards=True)


def prove(root: Path, written: Written | None, *, as_json: bool, with_rewards: bool) -> None:
    """Prints what was proven; exits with 1 when a problem was found."""
    from consumers.audit import verify_rewards

    with asking(root) as questions, progress("proving", 1) as bar:
        task = bar.task_ids[0]
        proof = verify(
            questions.ledger,
            lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
            written=written,
        )
    problems, rewards = list(proof.problems), 0
    notes = list(proof.notes)
    if with_rewards and not problems:
        with asking(root, proof.cut) as questions:
            total = questions.rows("SELECT count(*) AS n FROM reward")[0]["n"]
            with progress("rewards", total) as bar:
                rewards, wrong, told = verify_rewards(
                    questions.ledger, questions, lambda n: bar.advance(bar.task_ids[0], n)
                )
        problems += wrong
        notes += told
    figures = {"frames": proof.frames, "events": proof.events, "segments": proof.segments, "blobs": proof.blobs}
    found = {
        "cut": proof.cut,
        "head": proof.head,
        **figures,
        "rewards": rewards,
        "problems": problems,
        "notes": notes,
    }
    if as_json:
        print_json(found)
    else:
        for problem in problems:
            click.echo(problem)
        for note in notes:
            say(f"note: {note}")
        counted = ", ".join(f"{count} {name}" for name, count in {**figures, "rewards": rewards}.items())
        click.echo(f"{'FAILED' if problems else 'proven'}: {counted}")
        click.echo(f"head {proof.head}")
        click.echo(f"cut {proof.cut}")
        if proof.problems and with_rewards:
            say("rewards were not computed again: mend the ledger first")
    if problems:
        raise click.exceptions.Exit(1)
