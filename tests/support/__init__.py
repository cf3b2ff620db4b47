"""Builders, servers and runners that tests of several packages share."""
