"""Stepwise upgrades of the SQL tables, run by alembic from code: `ledger.store.opened` names this package's folder."""
