"""Use cases that bring data into the ledger or label it."""
