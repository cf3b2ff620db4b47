"""Use cases that execute programs."""
