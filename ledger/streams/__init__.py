"""How frames travel between processes: one small interface, with a local implementation and one over Kafka."""

from ledger.streams.base import Position, Stored, Stream

__all__ = ["Position", "Stored", "Stream"]
