"""Campaigns: planning what is to be run, in which order, and running it in sandbox slots."""
