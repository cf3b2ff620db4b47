"""Commands that create, maintain, repair and move a ledger."""
