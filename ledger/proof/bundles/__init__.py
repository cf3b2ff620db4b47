"""Proof bundles: single frames extracted, written and verified without a ledger."""
