"""Named replays of `lap replay`: a preview of what would be stored, and its storage."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.loading import JudgedCampaign
from lapledger.workflows.session import LedgerWriter, release

if TYPE_CHECKING:
    from lapledger.consumers.derive.named_replay_writer import Draft, Flipped

LONGEST = 300
"""Characters of a name or a reason: as many as an imported file may give a name."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How a user names a replay; `store` is None where it is still to be decided."""

    name: str
    reason: str
    store: bool | None
    previous: str | None

    @classmethod
    def of(
        cls,
        name: str | None,
        reason: str | None,
        store: bool | None,
        previous: str | None,
        *,
        criteria: int,
        every_model: bool,
    ) -> "Naming | None":
        """The naming that the flags state, None without a name; UserError where they do not fit together."""
        if name is None:
            if reason is not None or store is not None:
                raise UserError("--reason, --store and --preview are about a named replay; give it a name with --name")
            if previous is not None:
                raise UserError("--previous is about a named replay; give it a name with --name")
            return None
        if not name.strip() or not name.isprintable():
            raise UserError("--name: a replay's name is one line of text; write for instance --name strict")
        if reason is None or not reason.strip() or not reason.isprintable():
            raise UserError("a named replay needs its reason, one line of text; add --reason TEXT")
        for flag, text in (("--name", name), ("--reason", reason)):
            if len(text) > LONGEST:
                raise UserError(f"{flag}: {len(text)} characters, above the limit of {LONGEST}; shorten it")
        if criteria > 1:
            raise UserError(
                "a named replay has one criterion: give one --tau and no --against; --previous NAME compares it with an"
                " earlier replay"
            )
        if not every_model:
            raise UserError("a named replay judges the programs of every model; omit --model")
        return cls(name, reason, store, previous)


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """A judged campaign under a name, and what would be stored of it."""

    naming: Naming
    judged: JudgedCampaign
    draft: "Draft"


def preview(questions: Questions, judged: JudgedCampaign, naming: Naming) -> Preview:
    """What would be stored. Earlier replays are looked up at everything admitted, whatever cut was judged.

    UserError when the name is taken, the same replay is stored already, or `previous` names none of the same campaign.
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
    """The replay that `previous` names, else the latest of the campaign that holds its verdicts, if there is one."""
    from lapledger.consumers.derive.named_replay_reader import find_replay, named

    if naming.previous is None:
        rows = [row for row in named(questions) if row["campaign_id"] == campaign and row["verdicts_blob"]]
        return rows[-1] if rows else None
    row = find_replay(questions, naming.previous)
    if row["campaign_id"] != campaign:
        raise UserError(
            f"replay {row['name']!r} is of campaign {row['campaign_id']!r}, this one of {campaign!r}: programs of "
            "different campaigns meet only through a named calibration; compare two stored replays with `lap diff`"
        )
    if row["verdicts_blob"] is None:
        raise UserError(
            f"replay {row['name']!r} holds no verdicts; name another with --previous, or compare by `lap diff`"
        )
    return row


def store_preview(writer: LedgerWriter, preview: Preview) -> None:
    """Stores the replay that was previewed."""
    from lapledger.consumers.derive.named_replay_writer import store

    judged = preview.judged
    store(writer.ledger, writer.producer, preview.draft, criterion=judged.criterion, name=judged.name)


def tally(preview: Preview, flips: Sequence["Flipped"]) -> list[tuple[str, str, int]]:
    """(model, from what to what, programs)."""
    models = {p: model for m in preview.judged.measurements for p, model in zip(m.programs, m.models, strict=True)}
    counts = Counter((models[flip.program], f"{flip.before} -> {flip.after}") for flip in flips)
    return [(*key, count) for key, count in sorted(counts.items())]


def as_json(preview: Preview, *, stored: bool) -> dict[str, Any]:
    event = asdict(preview.draft.event)
    del event["result"]
    flips = preview.draft.flips
    counts = [{"model": model, "kind": kind, "count": count} for model, kind, count in tally(preview, flips or [])]
    return {
        "stored": stored,
        **event,
        "tally": counts,
        "flips": None if flips is None else [asdict(flip) for flip in flips],
    }


@dataclass(frozen=True, slots=True)
class StoredReplays:
    """The named replays at a cut, in the order in which they were stored, and the names of stored criteria by hash."""

    cut: str
    rows: Sequence[dict[str, Any]]
    criteria: dict[str, str]


def stored_replays(questions: Questions) -> StoredReplays:
    """The named replays at the questions' cut."""
    from lapledger.consumers.derive.named_replay_reader import named

    criteria = {row["criterion_hash"]: row["name"] for row in questions.rows("SELECT * FROM criterion")}
    return StoredReplays(str(questions.cut), named(questions), criteria)
