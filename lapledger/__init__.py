"""An event-sourced experiment ledger with replayable evaluation: the command `lap` and the Python API."""
