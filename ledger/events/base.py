"""How an event type is declared: a frozen dataclass, a fixed name, a version, and the Arrow schema they give.

Nothing here, and no event type, reads a clock, the host, the environment or a source of randomness: whoever saw the
fact passes everything in. Names are dotted texts with a version (`timing.measured`, 1), never class paths.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

FACTS = "facts"
CONTROL = "control"
REQUESTS = "requests"
PARTITIONS: Mapping[str, int] = types.MappingProxyType({CONTROL: 1, FACTS: 4, REQUESTS: 8})
"""Every stream with its number of partitions; the numbers never change in the life of a ledger."""

T = TypeVar("T")

_ARROW: Mapping[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


class Event(Protocol):
    """Any instance of a declared event type."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """One documented column of an event type."""

    name: str
    arrow: pa.DataType
    nullable: bool
    doc: str


@dataclass(frozen=True, slots=True)
class EventType:
    """What is fixed about one version of an event: its name, stream, key column, columns and schema.

    `added` is the step from the version before: each column that this one added, with its value in older events.
    """

    name: str
    version: int
    cls: type
    stream: str
    key: str
    doc: str
    columns: tuple[Column, ...]
    schema: pa.Schema
    added: Mapping[str, Any]


EVENTS: dict[tuple[str, int], EventType] = {}
_BY_CLASS: dict[type, EventType] = {}


def fact(
    name: str, version: int, *, stream: str = FACTS, key: str | None = None, added: Mapping[str, Any] | None = None
) -> Callable[[type[T]], type[T]]:
    """Class decorator that declares an event type; `key` names the column that decides the partition.

    Without one, facts are keyed by `problem_id` and the rest by nothing. `added` is needed where a version has columns
    that the one before lacks.
    """
    column = ("problem_id" if stream == FACTS else "") if key is None else key

    def declare(cls: type[T]) -> type[T]:
        columns = tuple(_column(field.name, hint) for field, hint in _hints(cls))
        schema = pa.schema([pa.field(c.name, c.arrow, nullable=c.nullable) for c in columns])
        doc = " ".join((cls.__doc__ or "").split())
        declared = EventType(name, version, cls, stream, column, doc, columns, schema, dict(added or {}))
        EVENTS[name, version] = _BY_CLASS[cls] = declared
        return cls

    return declare


def _hints(cls: type) -> list[tuple[Any, Any]]:
    hints = get_type_hints(cls, include_extras=True)
    return [(field, hints[field.name]) for field in dataclasses.fields(cls)]


def _column(name: str, hint: Any) -> Column:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"column {name} has no description")
    plain, doc = get_args(hint)
    nullable = get_origin(plain) in (Union, types.UnionType)
    if nullable:
        (plain,) = (arm for arm in get_args(plain) if arm is not type(None))
    if get_origin(plain) is tuple:
        return Column(name, pa.list_(pa.field("item", _ARROW[get_args(plain)[0]], nullable=False)), nullable, doc)
    return Column(name, _ARROW[plain], nullable, doc)


def latest(name: str) -> EventType:
    """The newest version of an event type; KeyError when the name is unknown."""
    return EVENTS[name, max(version for known, version in EVENTS if known == name)]


def type_of(event: Event) -> EventType:
    """The declared type of an event; KeyError when its class was never declared."""
    return _BY_CLASS[type(event)]


def to_batch(events: Sequence[Event]) -> pa.RecordBatch:
    """Events of one type as a record batch [len(events)]; ValueError when the list is empty or mixed."""
    if not events:
        raise ValueError("a frame needs at least one event")
    declared = type_of(events[0])
    if any(type(event) is not declared.cls for event in events):
        raise ValueError(f"a frame holds events of one type; this one starts with {declared.name}")
    arrays = [pa.array([getattr(e, c.name) for e in events], type=c.arrow) for c in declared.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=declared.schema)


def from_batch(declared: EventType, batch: pa.RecordBatch) -> list[Any]:
    """The events of a batch, in its order."""
    return [declared.cls(**_row(row)) for row in batch.to_pylist()]


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def key_of(event: Event) -> str:
    """The partition key of an event: its problem's id, or "" on a one-partition stream."""
    declared = type_of(event)
    return str(getattr(event, declared.key)) if declared.key else ""
