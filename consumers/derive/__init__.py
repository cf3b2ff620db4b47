"""Derived facts: calibrations, rewards and named replays, and their audit."""
