"""How a model's samples come into the ledger: as rollouts and programs that `lap run` executes.

Ids follow from the file's content, so that an import which was cut short goes on, and the same file twice adds nothing.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from lapledger.consumers.training.rollouts import Training, roll
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import Event, ProgramAdded, ResultsImported
from lapledger.ledger.questions.queries import Questions
from lapledger.producers.importers.events import import_id, imported, shortened
from lapledger.producers.importers.model import line
from lapledger.producers.importers.samples import FORMAT
from lapledger.workflows.data.sample_files import Batch, CheckedFile, SampleOptions, batches_of, problem_ids
from lapledger.workflows.session import LedgerWriter

_UNKNOWN = ("how its programs ended", "what they took")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSummary:
    """What one file brought: its samples by model, how many hold no program, and how many name no known problem."""

    file: str
    held: bool
    models: Mapping[str, int]
    problems: int
    samples: int
    without_program: int
    unmatched: Mapping[str, int]  # problem as the file names it -> its samples


def import_samples(writer: LedgerWriter, checked: CheckedFile, options: SampleOptions) -> SampleSummary:
    """Appends what the ledger lacks of a checked file, group by group, then its provenance.

    UserError where the ledger holds other programs of its model, which it does not extend.
    """
    event = _provenance(checked, options)
    with closing(Questions(writer.ledger)) as questions:
        held = bool(questions.rows("SELECT import_id FROM imported WHERE import_id = $id", id=event.import_id))
        ids, stored = problem_ids(questions), _stored(questions, list(checked.models))
    total, without_program = sum(checked.models.values()), 0
    if not held:
        with writer.reporter.progress(line(checked.file.name, 40), total) as bar:
            for number, batch in enumerate(batches_of(checked.path, ids, options)):
                events = _facts(writer, f"{FORMAT} {checked.file.digest} {number}", batch, options)
                if number == 0:
                    _refuse_others(stored, events, options)
                writer.producer.append(event for event in events if _key(event) not in stored)
                without_program += sum(isinstance(event, ProgramAdded) and not event.source_bytes for event in events)
                bar.advance(len(batch))
        writer.producer.append([event])
        writer.admit()
    return SampleSummary(
        file=checked.file.name,
        held=held,
        models=dict(sorted(checked.models.items())),
        problems=len(checked.problems),
        samples=total,
        without_program=without_program,
        unmatched=dict(sorted(checked.unmatched.items())),
    )


def _provenance(checked: CheckedFile, options: SampleOptions) -> ResultsImported:
    """Where the samples come from, with the fields that the user mapped."""
    model = options.model or ", ".join(sorted(checked.models))
    unmatched = checked.unmatched.items()
    reasons = [f"{count} samples of {line(problem)}: no such problem" for problem, count in unmatched]
    return replace(
        imported(FORMAT, "samples of a model", checked.file, options.provenance),
        import_id=import_id(FORMAT, checked.file.digest, model),
        model=model,
        records=sum(checked.models.values()) + sum(checked.unmatched.values()),
        excluded=shortened(reasons),
        unknown=_UNKNOWN,
        source_metadata=json.dumps({"map": dict(options.names.named)}, sort_keys=True),
    )


def _facts(writer: LedgerWriter, batch_id: str, batch: Batch, options: SampleOptions) -> list[Event]:
    """The events of a batch, its texts stored."""
    events: list[Event] = []
    for model in dict.fromkeys(model for model, _ in batch):
        rolled = roll(
            Training(model, temperature=options.temperature),
            batch_id,
            [(completion.problem, completion) for name, completion in batch if name == model],
            writer.ledger.blobs.put_many,
        )
        events += rolled.events
    return events


_KEYS = {
    "GroupOpened": "group_id",
    "RolloutSampled": "rollout_id",
    "ProgramAdded": "program_id",
    "GroupClosed": "group_id",
}
Key = tuple[str, str]
"""The type of a fact and its id."""


def _key(event: Event) -> Key:
    kind = type(event).__name__
    return kind, str(getattr(event, _KEYS[kind]))


def _stored(questions: Questions, models: Sequence[str]) -> set[Key]:
    """What the ledger holds of these models."""
    return {(row["kind"], row["id"]) for row in questions.rows(_STORED, models=models)}


_STORED = """
WITH opened AS (SELECT DISTINCT group_id FROM group_opened WHERE list_contains($models, training_id)),
sampled AS (SELECT DISTINCT rollout_id FROM rollout_sampled JOIN opened USING (group_id))
SELECT 'GroupOpened' AS kind, group_id AS id FROM opened
UNION ALL SELECT 'GroupClosed', group_id FROM group_closed JOIN opened USING (group_id)
UNION ALL SELECT 'RolloutSampled', rollout_id FROM sampled
UNION ALL SELECT 'ProgramAdded', program_id FROM program LEFT JOIN sampled USING (rollout_id)
WHERE list_contains($models, model) OR sampled.rollout_id IS NOT NULL
"""


def _refuse_others(stored: set[Key], events: Sequence[Event], options: SampleOptions) -> None:
    """UserError where the ledger holds programs of these models that are not of an import which was cut short."""
    if stored and not options.extend and stored.isdisjoint(map(_key, events)):
        raise UserError(
            "the ledger holds programs of this model already; add --extend to add these to them, or choose another"
            " name with --model"
        )
