"""From the stream into the ledger: admission in one transaction, and retries from quarantine."""
