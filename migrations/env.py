"""Run by alembic, which is always started by `ledger.store.open_ledger` with an open connection in its attributes."""

from alembic import context
from sqlmodel import SQLModel

from lapledger.ledger.store.sql import tables

assert tables  # noqa: S101  # importing it declares the tables

context.configure(connection=context.config.attributes["connection"], target_metadata=SQLModel.metadata)
with context.begin_transaction():
    context.run_migrations()
