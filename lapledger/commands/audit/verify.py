"""`lap verify`: verify the ledger's bytes and recompute every reward, or print the head hash."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.errors import LapError, UserError
from lapledger.ledger.proof import Proof, RecordedHead, current_head, verify
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.ledger.store.location import LedgerPath
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.streams.base import Stream
from lapledger.render.output import print_json, print_line, print_message, progress
from lapledger.settings import read_settings
from lapledger.workflows.malloc import keep_freed_memory


@click.command()
@click.option("--print-head", "only_head", is_flag=True, help="Only print the ledger's head hash, to store off-site.")
@click.option("--head", default=None, metavar="HEAD", help="Stored head hash: check that nothing before it changed.")
@click.option("--skip-rewards", is_flag=True, help="Do not recompute rewards and named replays.")
@ledger_option
@json_option
def command(only_head: bool, head: str | None, skip_rewards: bool, ledger: str | None, as_json: bool) -> None:
    """Verify digests, chains, segments and blobs, and recompute every reward. Exit code 1 on any problem.

    Store the hash that `--print-head` prints outside the ledger. Passed back with --head, it proves that nothing up to
    it was changed or cut off, however much was admitted, sealed, compacted and collected since.

    \b
    Example:
      lap verify --print-head > head.txt
      lap verify --head "$(cat head.txt)"
    """
    location = read_settings(ledger=ledger).location
    if only_head and head is not None:
        raise UserError("--print-head prints the current head and --head checks a stored one; use one of them")
    if only_head:
        print_head(location, as_json=as_json)
        return
    written = None if head is None else RecordedHead.parse(head)
    prove(location, written, as_json=as_json, with_rewards=not skip_rewards)


def print_head(location: LedgerPath, *, as_json: bool) -> None:
    """Prints the current head; nothing is verified."""
    with closing(open_ledger(location)) as ledger:
        written = current_head(ledger)
    if as_json:
        print_json({"token": str(written), "head": written.head, "cut": str(written.cut)})
    else:
        print_line(str(written))


def prove(location: LedgerPath, written: RecordedHead | None, *, as_json: bool, with_rewards: bool) -> None:
    """Prints what was verified; exits with 1 when a problem was found."""
    proof = _proof(location, written)
    rewards = 0
    if with_rewards and not proof.problems:
        rewards, wrong, skipped = _rewards(location, proof.cut)
        proof = replace(proof, problems=tuple(wrong), notes=(*proof.notes, *skipped))
    elif with_rewards:
        print_message("rewards were not recomputed: repair the ledger first")
    _print(proof, rewards, as_json=as_json)
    if proof.problems:
        raise click.exceptions.Exit(1)


def _proof(location: LedgerPath, written: RecordedHead | None) -> Proof:
    keep_freed_memory()
    with closing(open_ledger(location)) as ledger, _stream_of(ledger) as (stream, lost), progress("proving", 1) as bar:
        task = bar.task_ids[0]
        return verify(
            ledger,
            lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
            written=written,
            stream=stream,
            stream_error=lost,
        )


@contextmanager
def _stream_of(ledger: Ledger) -> Iterator[tuple[Stream | None, LapError | None]]:
    """The stream that the ledger reads, or none and why: a copy of a ledger may lie where its stream is not."""
    try:
        stream = ledger.stream()
    except LapError as error:
        yield None, error
        return
    try:
        yield stream, None
    finally:
        stream.close()


def _rewards(location: LedgerPath, cut: str) -> tuple[int, list[str], list[str]]:
    """Rewards recomputed, and problems and notes of these and of the named replays, asked again."""
    from lapledger.consumers.derive.named_replay_reader import verify_replays
    from lapledger.consumers.derive.reward_audit import verify_rewards

    with open_questions(location, cut) as questions:
        total = questions.rows("SELECT count(*) AS n FROM reward")[0]["n"]
        with progress("rewards", total) as bar:
            recomputed, wrong, skipped = verify_rewards(
                questions.ledger, questions, lambda n: bar.advance(bar.task_ids[0], n)
            )
        _, denied, noted = verify_replays(questions.ledger, questions)
    return recomputed, [*wrong, *denied], [*skipped, *noted]


def _print(proof: Proof, rewards: int, *, as_json: bool) -> None:
    counts = {"frames": proof.frames, "events": proof.events, "segments": proof.segments, "blobs": proof.blobs}
    figures: dict[str, Any] = {**counts, "rewards": rewards}
    if as_json:
        seen = {"cut": proof.cut, "head": proof.head, **figures}
        print_json({**seen, "problems": list(proof.problems), "notes": list(proof.notes)})
        return
    for problem in proof.problems:
        print_line(problem)
    for note in proof.notes:
        print_message(f"note: {note}")
    counted = ", ".join(f"{recomputed} {name}" for name, recomputed in figures.items())
    print_line(f"{'FAILED' if proof.problems else 'proven'}: {counted}")
    print_line(f"head {proof.head}")
    print_line(f"cut {proof.cut}")
