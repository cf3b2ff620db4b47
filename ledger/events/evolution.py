"""Reads old facts as new ones: one declared step from each version of an event to the next, over Arrow columns.

A step adds columns, or lets some be null that never were. Stored rows never change. Every reader, Arrow and SQL alike,
goes through `project`.
"""

import pyarrow as pa

from lapledger.ledger.events.base import EVENTS, EventType


def project(table: pa.Table, stored: EventType, wanted: EventType) -> pa.Table:
    """Rows of an older version as a newer one [rows]: its columns in its order, then those that are no event's own.

    Columns that `stored` has and the table lacks stay away, so that a projection to few columns works too.
    """
    added = steps(stored, wanted)
    first = pa.repeat(0, len(table))  # the one row of `added`; an empty list cannot be repeated as a value
    for field in added.schema:
        table = table.append_column(field, added[field.name].take(first))
    names = {*stored.schema.names, *added.column_names}
    event_columns = [name for name in wanted.schema.names if name in table.column_names]
    chosen = table.select([*event_columns, *(name for name in table.column_names if name not in names)])
    fields = [wanted.schema.field(f.name).with_type(f.type) if f.name in event_columns else f for f in chosen.schema]
    return pa.Table.from_arrays(chosen.columns, schema=pa.schema(fields))


def steps(stored: EventType, wanted: EventType) -> pa.Table:
    """What every row of an older version gains on the way to a newer one [1]: a column for each that was added."""
    fields, values = [], []
    for version in range(stored.version + 1, wanted.version + 1):
        step = EVENTS[wanted.name, version]
        for name, value in step.added.items():
            fields.append(step.schema.field(name))
            values.append(pa.array([value], fields[-1].type))
    return pa.Table.from_arrays(values, schema=pa.schema(fields))


def versions_of(wanted: EventType) -> list[EventType]:
    """The versions that can be read as `wanted`, oldest first, itself included."""
    return [EVENTS[wanted.name, version] for version in range(1, wanted.version + 1)]
