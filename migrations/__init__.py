"""Stepwise upgrades of the SQL tables, run by alembic from code: `ledger.store.open_ledger` names this folder."""
