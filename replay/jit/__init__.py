"""The common criteria in machine code; see `evaluation`. Importing this package loads nothing."""
