"""Leases, segment ranges, compaction, retries; and guards: what is immutable refuses to be changed or removed.

Revises: 0001
"""

import json

import sqlalchemy as sa
from alembic import op

from lapledger.migrations.guards import postgres_guards, sqlite_guards

revision = "0002"
down_revision = "0001"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def upgrade() -> None:
    """Adds the columns and tables, fills the ranges of stored segments, and installs the guards."""
    op.add_column("stream_position", sa.Column("lease_holder", sa.Text(), nullable=False, server_default=""))
    for name in ("lease_until", "moves", "moved", "moved_id"):
        op.add_column("stream_position", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    _tables()
    _fill_ranges()
    guards = postgres_guards() if op.get_bind().dialect.name == "postgresql" else sqlite_guards()
    for statement in guards:
        op.get_bind().exec_driver_sql(statement)


def _tables() -> None:
    op.create_table(
        "lease", *(_text("name"), _big("epoch"), _text("holder"), _big("until")), sa.PrimaryKeyConstraint("name")
    )
    op.create_table(
        "segment_range",
        *(_big("ordinal"), _text("stream"), sa.Column("partition", sa.Integer(), nullable=False), _text("type")),
        *(sa.Column("version", sa.Integer(), nullable=False), _big("first"), _big("last")),
        sa.PrimaryKeyConstraint("ordinal", "stream", "partition"),
    )
    op.create_index("segment_range_place", "segment_range", ["type", "version", "stream", "partition", "last"])
    op.create_table(
        "supersession",
        sa.Column("ordinal", sa.BigInteger(), nullable=False, autoincrement=False),
        *(_big("by"), _big("since")),
        sa.PrimaryKeyConstraint("ordinal"),
    )
    op.create_table(
        "quarantine_retry",
        sa.Column("id", sa.BigInteger(), nullable=False, autoincrement=False),
        *(_big("admission"), _text("seen")),
        sa.PrimaryKeyConstraint("id"),
    )


def _fill_ranges() -> None:
    connection = op.get_bind()
    insert = sa.text(
        "INSERT INTO segment_range (ordinal, stream, partition, type, version, first, last)"
        " VALUES (:ordinal, :stream, :partition, :type, :version, :first, :last)"
    )
    for ordinal, kind, version, admissions in connection.execute(
        sa.text("SELECT ordinal, type, version, admissions FROM segment")
    ).all():
        for stream, partition, first, last in json.loads(admissions):
            row_range = {"stream": stream, "partition": partition, "first": first, "last": last}
            connection.execute(insert, row_range | {"ordinal": ordinal, "type": kind, "version": version})
