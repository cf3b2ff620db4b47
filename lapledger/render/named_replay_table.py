"""Named replays as tables: what would be stored, and what is stored."""

from typing import TYPE_CHECKING

from lapledger.render.output import count, print_line, print_message, print_table
from lapledger.workflows.analysis.named_replays import tally

if TYPE_CHECKING:
    from lapledger.workflows.analysis.named_replays import Preview, StoredReplays


def show_preview(preview: "Preview", *, name_flips: bool) -> None:
    """Prints what would be stored, and the verdicts that flip against the earlier replay."""
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
        print_line("flips: no earlier replay of this campaign to compare with")
        return
    print_line(f"{made.against['name']} -> {event.name}: {count(len(made.flips), 'verdict')} flipped")
    if made.flips:
        print_table(("model", "flip", "programs"), tally(preview, made.flips))
    if name_flips and made.flips:
        flips = [(flip.program, flip.before, flip.after, flip.reason) for flip in made.flips]
        print_table(("program", "before", "after", "reason"), flips)


def show_replays(stored: "StoredReplays") -> None:
    """Prints the named replays, one row each."""
    by_id = {row["replay_id"]: row["name"] for row in stored.rows}
    columns = ("id", "name", "campaign", "criterion", "kernel", "flipped", "against", "reason")
    cells = [
        (
            row["replay_id"][:12],
            row["name"],
            row["campaign_id"],
            stored.criteria.get(row["criterion_hash"], row["criterion_hash"][:12]),
            row["kernel"],
            "-" if row["flipped"] is None else row["flipped"],
            by_id.get(row["against"] or "", "-"),
            row["reason"],
        )
        for row in stored.rows
    ]
    print_table(columns, cells, cut=stored.cut)
    if not stored.rows:
        print_message('no replay is stored yet; store one with `lap replay --name NAME --reason "WORDS" --store`')
