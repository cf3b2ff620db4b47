"""Use cases that judge stored results."""
