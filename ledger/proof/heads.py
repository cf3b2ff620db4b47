"""The word that a ledger is written down as: its head and the cut that it covers, in one piece to copy."""

import re
from dataclasses import dataclass

from lapledger.ledger.errors import UserError
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger, cut_now, head_now
from lapledger.ledger.store.sql.engine import reading

_FORM = "64 hex digits, @ and a cut, as `lap verify --print-head` printed it"
_HEAD = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Written:
    """A head that was written down outside the ledger, with the cut that it covers."""

    cut: Cut
    head: str

    @classmethod
    def parse(cls, word: str) -> "Written":
        """The head in a word; UserError when it is none."""
        head, at, cut = word.strip().partition("@")
        if not at or not _HEAD.fullmatch(head):
            raise UserError(f"{word[:100]!r} is no head; give {_FORM}")
        return cls(Cut.parse(cut), head)

    def __str__(self) -> str:
        return f"{self.head}@{self.cut}"


def written_now(ledger: Ledger) -> Written:
    """The head of everything admitted and sealed now, to be written down elsewhere."""
    with reading(ledger.engine) as connection:
        return Written(cut_now(connection), head_now(connection))
