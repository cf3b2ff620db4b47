"""Use cases: what commands, screens and trainers do. Nothing here prints or parses a command line."""
