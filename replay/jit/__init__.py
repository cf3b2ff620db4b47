"""The common criteria in machine code; see `weighing`. Importing this package loads nothing."""
