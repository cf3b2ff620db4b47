"""Questions to a ledger at a cut, answered by DuckDB over documented views."""
