"""Proof bundles: one writer of zip files that prove what a ledger held, and the verifier that travels in them."""
