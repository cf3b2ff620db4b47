"""How frames travel between processes: one small interface and its local implementation."""

from ledger.streams.base import Position, Stored, Stream

__all__ = ["Position", "Stored", "Stream"]
