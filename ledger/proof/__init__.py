"""Proving a ledger: every digest recomputed from the values themselves, every chain and position followed.

It reads and collects problems; it repairs nothing and raises nothing for what it finds.
"""

from lapledger.ledger.proof.heads import RecordedHead, current_head
from lapledger.ledger.proof.verify import Proof, verify

__all__ = ["Proof", "RecordedHead", "current_head", "verify"]
