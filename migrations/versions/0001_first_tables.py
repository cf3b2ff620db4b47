"""The first tables: the ledger, positions, frames with their tail, gaps, segments and the quarantine.

Revises: nothing.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _small(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _blob(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def upgrade() -> None:
    """Makes all tables."""
    op.create_table("ledger", _text("identity"), _text("created"), sa.PrimaryKeyConstraint("identity"))
    op.create_table(
        "stream_position",
        *(_text("stream"), _small("partition"), _text("identity"), _big("next_position"), _big("admissions")),
        *(_text("head"), _big("duplicates"), _big("lease_epoch")),
        sa.PrimaryKeyConstraint("stream", "partition"),
    )
    _frames()
    _segments()
    op.create_table(
        "quarantine",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        *(_text("stream"), _small("partition"), _big("source_offset"), _text("reason"), _text("message")),
        *(_text("headers"), _blob("payload"), _text("seen")),
        sa.PrimaryKeyConstraint("id"),
    )


def _frames() -> None:
    op.create_table(
        "frame",
        *(_text("stream"), _small("partition"), _big("admission"), _text("type"), _small("version"), _text("key")),
        *(_text("epoch"), _big("sequence"), _text("previous"), _text("digest"), _small("rows"), _big("source_offset")),
        sa.PrimaryKeyConstraint("stream", "partition", "admission"),
        sa.UniqueConstraint("stream", "partition", "epoch", "sequence", name="frame_link"),
    )
    op.create_table(
        "tail",
        *(_text("stream"), _small("partition"), _big("admission"), _text("type"), _small("version"), _blob("payload")),
        sa.PrimaryKeyConstraint("stream", "partition", "admission"),
    )
    op.create_index("tail_type", "tail", ["type", "version", "stream", "partition", "admission"])
    op.create_table(
        "gap",
        *(_text("stream"), _small("partition"), _text("epoch"), _big("first_missing"), _big("last_missing")),
        sa.PrimaryKeyConstraint("stream", "partition", "epoch", "first_missing"),
    )


def _segments() -> None:
    op.create_table(
        "segment",
        sa.Column("ordinal", sa.BigInteger(), nullable=False, autoincrement=False),
        *(_text("name"), _text("manifest"), _text("type"), _small("version"), _big("frames"), _big("rows")),
        *(_big("bytes"), _text("admissions")),
        sa.PrimaryKeyConstraint("ordinal"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("manifest"),
    )
