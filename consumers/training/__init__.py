"""Trainers: completions as rollouts, their rewards, and the calling conventions of TRL and verl."""
