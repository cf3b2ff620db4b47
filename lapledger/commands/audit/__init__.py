"""Commands that explain a verdict, follow a reward to its timings, and prove the ledger."""
