"""Files of sampled completions as plain values: JSON Lines or Parquet, one or several completions a row.

The field names of common samplers are known; a user maps others. No program is extracted here, and nothing is stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lapledger.ledger.errors import UserError, nearest
from lapledger.producers.importers.files import check_file, is_parquet, lines_of, open_parquet, parse_json, shown
from lapledger.producers.importers.model import line
from lapledger.producers.importers.records import Record

FORMAT = "samples"
MAX_SAMPLES = 10_000
"""Completions of one row."""
FIELDS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "problem": (
            *("problem_id", "problem", "task_id", "question_id", "slug"),
            *("doc.task_id", "doc.question_id", "doc.problem_id", "info.problem_id", "info.task_id"),
        ),
        "text": (
            *("completions", "completion", "output_list", "responses", "response", "generations", "generation"),
            *("samples", "outputs", "output", "resps"),
        ),
        "source": ("solutions", "solution", "code_list", "code", "program", "source"),
        "prompt": ("prompt",),
        "model": ("model", "model_name"),
        "group": ("group_id", "group"),
        "policy": ("policy", "policy_version", "step"),
        "tokens": ("completion_tokens", "tokens", "num_tokens"),
        "prompt_tokens": ("prompt_tokens",),
        "log_probabilities": ("log_probabilities", "log_probs", "logprobs"),
        "finish_reason": ("finish_reason", "stop_reason"),
    }
)
"""What a sample may state, and the fields that are looked for, the first that a row has. `text` is what a model wrote,
`source` a program that needs no extraction. A dot leads into an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One completion as a file states it; None is what it does not state."""

    where: str
    row: int
    of_row: int  # completions in its row
    problem: str
    text: Any = None  # a text, or a conversation
    source: str | None = None
    prompt: Any = None
    model: str | None = None
    group: str | None = None
    policy: int | None = None
    tokens: int | None = None
    prompt_tokens: int | None = None
    log_probabilities: tuple[float, ...] | None = None
    finish_reason: str = ""


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Which field of a row states what: those that the user names, else those of `FIELDS`."""

    named: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "FieldMap":
        """The map that `problem=task_id,text=answer` states; UserError for what is no such pair."""
        pairs = [part for text in texts for part in text.split(",")]
        named: dict[str, str] = {}
        for pair in pairs:
            name, separator, path = (part.strip() for part in pair.partition("="))
            if not separator or not path:
                raise UserError(f"--map {shown(pair)}: write NAME=FIELD, for instance problem=task_id")
            if name not in FIELDS:
                hint = nearest(name, FIELDS) or ";"
                raise UserError(
                    f"--map {shown(pair)}: {name!r} is nothing that a sample states{hint} use one of"
                    f" {', '.join(FIELDS)}"
                )
            if named.setdefault(name, path) != path:
                raise UserError(f"--map: {name!r} is mapped twice; map it once")
        return cls(named)

    def value(self, record: Record, name: str) -> Any:
        """What a row states under a name; None where it states nothing. UserError where a mapped field is missing."""
        path = self.named.get(name)
        if path is None:
            return next((value for known in FIELDS[name] if (value := _at(record.value, known)) is not None), None)
        if not _has(record.value, path):
            fields = ", ".join(map(shown, list(record.value)[:20]))
            raise UserError(f"{record.where}: no field {shown(path)}, which --map names; it has {fields}")
        return _at(record.value, path)


def samples(path: Path, names: FieldMap) -> Iterator[Sample]:
    """Each completion of a file, read when it is asked for; UserError names the row that is broken, or says that there
    is none."""
    check_file(path)
    rows = 0
    for rows, value in _rows(path):
        yield from _samples(Record.of(value, f"{shown(path.name)}, row {rows}"), rows, names)
    if not rows:
        raise UserError(f"{shown(path.name)}: holds no row; is this the file of samples?")


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    if is_parquet(path):
        yield from _parquet_rows(path)
        return
    for number, (at, text) in enumerate(lines_of(path), 1):
        yield number, parse_json(text, f"{shown(path.name)}, line {at}")


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    import pyarrow as pa

    file, number = open_parquet(path), 0
    try:
        for batch in file.iter_batches(batch_size=64):
            for value in batch.to_pylist():
                number += 1
                yield number, value
    except (pa.ArrowException, OSError) as error:
        reason = line(str(error))
        raise UserError(f"{shown(path.name)}: broken after row {number} ({reason}); fetch it again") from error


def _samples(record: Record, row: int, names: FieldMap) -> Iterator[Sample]:
    values = {name: names.value(record, name) for name in FIELDS}
    problem, model, group = (_name(record, name, values[name]) for name in ("problem", "model", "group"))
    if problem is None:
        raise UserError(f"{record.where}: no field names the problem; add --map problem=FIELD")
    kind = _kind(values, names, record)
    parts = _parts(values[kind])
    if len(parts) > MAX_SAMPLES:
        raise UserError(f"{record.where}: {len(parts)} completions in one row, {MAX_SAMPLES} are the most; split it")
    counts = {name: _per_completion(record, name, values[name], len(parts)) for name in _COUNTS}
    for n, part in enumerate(parts):
        if kind == "source" and not isinstance(part, str):
            raise UserError(f"{record.where}: a program is {shown(part)}, expected a text")
        yield Sample(
            where=record.where,
            row=row,
            of_row=len(parts),
            problem=problem,
            text=part if kind == "text" else None,
            source=part if kind == "source" else None,
            prompt=values["prompt"],
            model=model,
            group=group,
            policy=_integer(record, "policy", values["policy"]),
            tokens=_integer(record, "tokens", counts["tokens"][n]),
            prompt_tokens=_integer(record, "prompt_tokens", values["prompt_tokens"]),
            log_probabilities=_numbers(record, counts["log_probabilities"][n]),
            finish_reason=_name(record, "finish_reason", counts["finish_reason"][n]) or "",
        )


_COUNTS = ("tokens", "log_probabilities", "finish_reason")
"""What each completion of a row has for itself."""


def _kind(values: Mapping[str, Any], names: FieldMap, record: Record) -> str:
    """Whether a row holds texts or programs: what the user mapped, else texts where there are any."""
    kinds = [kind for kind in ("text", "source") if kind in names.named] or ["text", "source"]
    kind = next((kind for kind in kinds if values[kind] is not None), None)
    if kind is None:
        raise UserError(
            f"{record.where}: no field holds a completion; add --map text=FIELD, or source=FIELD for programs as they"
            " are"
        )
    return kind


def _parts(value: Any) -> list[Any]:
    """The completions in a field: a text or a conversation is one, a list of these several, one level deep or two."""
    if isinstance(value, list) and not any(isinstance(part, Mapping) for part in value):
        return [inner for part in value for inner in (_parts(part) if isinstance(part, list) else [part])]
    return [value]


def _per_completion(record: Record, name: str, value: Any, count: int) -> Sequence[Any]:
    """The value of each of so many completions."""
    if value is None:
        return [None] * count
    listed = isinstance(value, list) and (name != "log_probabilities" or any(isinstance(v, list) for v in value))
    if not listed:
        value = [value]
    if len(value) != count:
        raise UserError(f"{record.where}: {len(value)} {name!r} for {count} completions; give one for each, or none")
    return list(value)


def _name(record: Record, name: str, value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return None if value is None else Record({name: value}, record.where).text(name)


def _integer(record: Record, name: str, value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else Record({name: value}, record.where).integer(name)


def _numbers(record: Record, value: Any) -> tuple[float, ...] | None:
    name = "log_probabilities"
    return None if value is None else tuple(Record({name: value}, record.where).numbers(name))


def _has(value: Mapping[str, Any], path: str) -> bool:
    head, _, rest = path.partition(".")
    if path in value or not rest:
        return path in value
    return isinstance(value.get(head), Mapping) and _has(value[head], rest)


def _at(value: Mapping[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    if path in value or not rest:
        return value.get(path)
    return _at(value[head], rest) if isinstance(value.get(head), Mapping) else None
