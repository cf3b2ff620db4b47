"""Files of a model's samples, read through once for mistakes and then in batches of whole groups.

Nothing is appended here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from lapledger.consumers.training.completions import Completion, prompt_text, text_of
from lapledger.consumers.training.rollouts import LONGEST_NAME
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.producers.importers.events import Provenance
from lapledger.producers.importers.files import SourceFile, digest_of, shown
from lapledger.producers.importers.samples import FieldMap, Sample, samples
from lapledger.workflows.reporter import Reporter

AT_ONCE = 512
"""Completions that are appended together, in whole groups."""
MOST_IN_GROUP = 4096
"""Completions of one group; consecutive rows of one problem without a key are split into groups of so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """What the user states about files of samples."""

    model: str | None = None  # of all of them; None: as the rows, else the file's name says
    names: FieldMap = field(default_factory=FieldMap)
    temperature: float | None = None
    skip_unmatched: bool = False
    extend: bool = False  # whether a model that has programs already may get more
    provenance: Provenance = field(default_factory=Provenance)


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that was read through once without a complaint."""

    path: Path
    file: SourceFile
    models: Counter[str]
    problems: frozenset[str]
    unmatched: Counter[str]


def check_samples(
    questions: Questions, paths: Sequence[Path], options: SampleOptions, reporter: Reporter
) -> list[CheckedFile]:
    """Every file read through. UserError for a broken row, a problem that is not in the ledger (unless it is to be
    skipped), a name that two files share, and a model that has programs of another file already."""
    ids = problem_ids(questions)
    checked = []
    with reporter.progress("reading", len(paths)) as bar:
        for path in paths:
            checked.append(_check_file(path, ids, options))
            bar.advance()
    unmatched = Counter(name for file in checked for name in file.unmatched)
    if unmatched and not options.skip_unmatched:
        raise UserError(_unmatched_message(unmatched, ids))
    derived = Counter(name for file in checked for name in file.models)
    twice = [name for name, count in derived.items() if count > 1]
    if twice and options.model is None:
        raise UserError(f"two files hold samples of {shown(twice[0])}; name their model with --model, or import one")
    return checked


def _check_file(path: Path, ids: Mapping[str, str], options: SampleOptions) -> CheckedFile:
    models, unmatched, problems = Counter[str](), Counter[str](), set[str]()
    last, stated = None, set[object]()
    for sample in samples(path, options.names):
        if sample.problem not in ids:
            unmatched[sample.problem] += 1
            continue
        _completion(sample, ids)
        key = _group_key(sample, path, options)
        if sample.group is not None and key != last and key[:3] in stated:
            raise UserError(
                f"{sample.where}: group {shown(sample.group)} began in an earlier row; sort the file by group"
            )
        last = key
        stated |= set() if sample.group is None else {key[:3]}
        models[key[0]] += 1
        problems.add(ids[sample.problem])
    if not models and not unmatched:
        raise UserError(f"{shown(path.name)}: holds no completion; is this the file of samples?")
    return CheckedFile(path, digest_of(path), models, frozenset(problems), unmatched)


def _model_of(sample: Sample, path: Path, options: SampleOptions) -> str:
    """The model that wrote a sample; UserError for a name that is none."""
    name = options.model or sample.model or path.name.split(".")[0]
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME or name == "human":
        raise UserError(f"{sample.where}: {shown(name)} is no model's name; name it with --model")
    return name


def _completion(sample: Sample, ids: Mapping[str, str]) -> Completion:
    try:
        text = sample.source if sample.source is not None else text_of(sample.text)
        prompt = None if sample.prompt is None else prompt_text(sample.prompt)
    except UserError as error:
        raise UserError(f"{sample.where}: {error}") from None
    return Completion(
        problem=ids[sample.problem],
        group=sample.group,
        text=text,
        prompt=prompt,
        policy=sample.policy,
        tokens=sample.tokens,
        prompt_tokens=sample.prompt_tokens,
        finish_reason=sample.finish_reason,
        source=sample.source,
        log_probabilities=sample.log_probabilities,
    )


Batch = Sequence[tuple[str, Completion]]
"""Completions, each with the model that wrote it."""


def batches_of(path: Path, ids: Mapping[str, str], options: SampleOptions) -> Iterator[Batch]:
    """The samples of known problems in batches of whole groups: consecutive ones of a model, problem and key.

    A row with several completions is a group by itself where no key is stated.
    """
    known = (sample for sample in samples(path, options.names) if sample.problem in ids)
    batch: list[tuple[str, Completion]] = []
    groups = 0
    for (model, *_), rows in groupby(known, lambda sample: _group_key(sample, path, options)):
        completions = [_completion(sample, ids) for sample in rows]
        for start in range(0, len(completions), MOST_IN_GROUP):
            groups += 1
            part = completions[start : start + MOST_IN_GROUP]
            batch += [(model, replace(completion, group=(groups, completion.group))) for completion in part]
        if len(batch) >= AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _group_key(sample: Sample, path: Path, options: SampleOptions) -> tuple[str, str, str | int | None, str | None]:
    """What the completions of one group have in common: model, problem, the stated key or the row, and the prompt."""
    alone = sample.row if sample.of_row > 1 else None
    prompt = None if sample.prompt is None else prompt_text(sample.prompt)
    return _model_of(sample, path, options), sample.problem, alone if sample.group is None else sample.group, prompt


def problem_ids(questions: Questions) -> dict[str, str]:
    """Id, slug and name of each problem -> its id; a slug or a name that two problems share is excluded."""
    rows = questions.rows("SELECT problem_id, slug, name FROM problem ORDER BY problem_id")
    shared = Counter(name for row in rows for name in {row["slug"], row["name"]})
    names = {
        name: row["problem_id"] for row in rows for name in (row["name"], row["slug"]) if name and shared[name] == 1
    }
    return names | {row["problem_id"]: row["problem_id"] for row in rows}


def _unmatched_message(unmatched: Counter[str], ids: Mapping[str, str]) -> str:
    listed = ", ".join(shown(name) for name in sorted(unmatched)[:10])
    more = f" and {len(unmatched) - 10} more" if len(unmatched) > 10 else ""
    known = ", ".join(sorted(set(ids.values()))[:5]) or "none; import problems first"
    plural = "problems are" if len(unmatched) > 1 else "problem is"
    return (
        f"{len(unmatched)} {plural} not in the ledger: {listed}{more}; add --skip-unmatched to import the others, or"
        f" --map problem=FIELD; known: {known}"
    )
