"""How a ledger is doing: progress, health and disk usage."""
