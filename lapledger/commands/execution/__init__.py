"""Commands that execute programs."""
