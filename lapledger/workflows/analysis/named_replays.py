"""Named replays of `lap replay`: what would be stored is shown first, then it is stored or dropped."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.location import Location
from lapledger.render.output import print_json, print_table, say
from lapledger.render.terminal import TERMINAL
from lapledger.replay.loading import JudgedCampaign
from lapledger.workflows.session import asking, release, writing

if TYPE_CHECKING:
    from lapledger.consumers.derive.named_replay_writer import Draft, Flipped

F = TypeVar("F", bound=Callable[..., Any])
LONGEST = 300
"""Characters of a name or a reason: as many as an imported file may give a name."""


def naming_options(function: F) -> F:
    """Adds --name, --reason, --store and --preview, and --list."""
    options = (
        click.option("--name", default=None, metavar="NAME", help="Name the answer, to store it as an event."),
        click.option("--reason", default=None, metavar="WORDS", help="Why it is asked; needed with --name."),
        click.option(
            "--store/--preview",
            default=None,
            help="Store it at once, or only show what would be stored.  [default: asks]",
        ),
        click.option("--list", "listing", is_flag=True, help="List the named replays instead."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Naming:
    """What a user said of a named replay; `store` is None where they are to be asked."""

    name: str
    reason: str
    store: bool | None
    against: str | None

    @classmethod
    def of(
        cls, name: str | None, reason: str | None, store: bool | None, *, against: str | None, taus: int
    ) -> "Naming | None":
        """The naming that the flags state, None without a name; UserError where they do not fit together."""
        if name is None:
            if reason is not None or store is not None:
                raise UserError("--reason, --store and --preview are about a named replay; give it a name with --name")
            return None
        if not name.strip() or not name.isprintable():
            raise UserError("--name: a replay's name is one line of text; write for instance --name strict")
        if reason is None or not reason.strip() or not reason.isprintable():
            raise UserError("a named replay says why it was asked in one line; add --reason WORDS")
        for flag, words in (("--name", name), ("--reason", reason)):
            if len(words) > LONGEST:
                raise UserError(f"{flag}: {len(words)} characters, above the limit of {LONGEST}; say it in fewer words")
        if taus > 1:
            raise UserError("a named replay asks one question; give one --tau, and another name to the next")
        return cls(name, reason, store, against)


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """A judged campaign under a name, and what would be stored of it."""

    naming: Naming
    judged: JudgedCampaign
    draft: "Draft"


def preview(questions: Questions, judged: JudgedCampaign, naming: Naming) -> Preview:
    """What would be stored. Earlier replays are looked up at everything admitted, whatever cut was judged.

    UserError when the name is taken, the same replay is stored already, or `against` names none of the same campaign.
    """
    from lapledger.consumers.derive.named_replay_writer import Label, check_free, draft

    now = Questions(questions.ledger)
    try:
        earlier = _earlier(now, judged.campaign, naming)
        made = draft(questions.ledger, judged, Label(naming.name, naming.reason, release()), against=earlier)
        check_free(now, made.event)
    finally:
        now.close()
    return Preview(naming, judged, made)


def _earlier(questions: Questions, campaign: str, naming: Naming) -> dict[str, Any] | None:
    """The replay that `against` names, else the latest of the campaign that holds its verdicts, if there is one."""
    from lapledger.consumers.derive.named_replay_reader import find_replay, named

    if naming.against is None:
        rows = [row for row in named(questions) if row["campaign_id"] == campaign and row["verdicts_blob"]]
        return rows[-1] if rows else None
    row = find_replay(questions, naming.against)
    if row["campaign_id"] != campaign:
        raise UserError(
            f"replay {row['name']!r} is of campaign {row['campaign_id']!r}, this one of {campaign!r}: programs of "
            "different campaigns meet only through a named calibration; compare two stored replays with `lap diff`"
        )
    if row["verdicts_blob"] is None:
        raise UserError(
            f"replay {row['name']!r} holds no verdicts; name another with --against, or compare by `lap diff`"
        )
    return row


def settle(place: Location, preview: Preview, *, quiet: bool, name_flips: bool) -> dict[str, Any]:
    """Shows what would be stored, and stores it where the user says so: the replay as JSON, `stored` in it."""
    if not quiet:
        _show(preview, name_flips=name_flips)
    stored = preview.naming.store
    if stored is None:
        stored = not quiet and sys.stdin.isatty() and click.confirm("Store it?", default=False, err=True)
    if stored:
        _store(place, preview)
        say(f"replay {preview.naming.name!r} is stored as {preview.draft.event.replay_id[:12]}")
    else:
        say("preview: nothing was stored; the same command with --store stores it")
    return _as_json(preview, stored=stored)


def _store(place: Location, preview: Preview) -> None:
    from lapledger.consumers.derive.named_replay_writer import store

    with writing(place, "lap replay", TERMINAL) as open_:
        judged = preview.judged
        store(open_.ledger, open_.producer, preview.draft, criterion=judged.criterion, name=judged.name)


def _show(preview: Preview, *, name_flips: bool) -> None:
    event, made = preview.draft.event, preview.draft
    rows = [
        ("id", event.replay_id[:16]),
        ("name", event.name),
        ("reason", event.reason),
        ("campaign", event.campaign_id),
        ("criterion", f"{event.criterion_hash[:12]}  {preview.judged.criterion.canonical().decode()}"),
        ("calibration", event.calibration_id[:12] if event.calibration_id else "none"),
        ("versions", f"kernel {event.kernel}, lapledger {event.release}"),
    ]
    print_table(("named replay", ""), rows, cut=event.cut)
    if made.flips is None or made.against is None:
        click.echo("flips: no earlier replay of this campaign to compare with")
        return
    click.echo(f"{made.against['name']} -> {event.name}: {len(made.flips)} verdicts flipped")
    if made.flips:
        print_table(("model", "flip", "programs"), _tally(preview, made.flips))
    if name_flips and made.flips:
        flips = [(one.program, one.before, one.after, one.reason) for one in made.flips]
        print_table(("program", "before", "after", "because"), flips)


def _tally(preview: Preview, flips: Sequence["Flipped"]) -> list[tuple[str, str, int]]:
    """(model, from what to what, programs)."""
    models = {p: model for m in preview.judged.measurements for p, model in zip(m.programs, m.models, strict=True)}
    counts = Counter((models[one.program], f"{one.before} -> {one.after}") for one in flips)
    return [(*key, count) for key, count in sorted(counts.items())]


def _as_json(preview: Preview, *, stored: bool) -> dict[str, Any]:
    event = asdict(preview.draft.event)
    del event["result"]
    flips = preview.draft.flips
    tally = [{"model": model, "kind": kind, "count": count} for model, kind, count in _tally(preview, flips or [])]
    return {
        "stored": stored,
        **event,
        "tally": tally,
        "flips": None if flips is None else [asdict(one) for one in flips],
    }


def list_replays(place: Location, at: str | None, *, as_json: bool) -> None:
    """Prints the named replays at a cut, in the order in which they were stored."""
    from lapledger.consumers.derive.named_replay_reader import named

    with asking(place, at) as questions:
        rows = named(questions)
        names = {row["criterion_hash"]: row["name"] for row in questions.rows("SELECT * FROM criterion")}
        cut = str(questions.cut)
    if as_json:
        print_json({"cut": cut, "replays": rows})
        return
    by_id = {row["replay_id"]: row["name"] for row in rows}
    columns = ("id", "name", "campaign", "criterion", "kernel", "flipped", "against", "reason")
    told = [
        (
            row["replay_id"][:12],
            row["name"],
            row["campaign_id"],
            names.get(row["criterion_hash"], row["criterion_hash"][:12]),
            row["kernel"],
            "-" if row["flipped"] is None else row["flipped"],
            by_id.get(row["against"] or "", "-"),
            row["reason"],
        )
        for row in rows
    ]
    print_table(columns, told, cut=cut)
    if not rows:
        say('no replay is stored yet; store one with `lap replay --name NAME --reason "WORDS" --store`')
