"""Sealed storage: segments written, merged, trimmed, rebuilt and copied."""
