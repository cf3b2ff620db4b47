"""The head of a ledger with the cut that it covers, as one text to store off-site."""

import re
from dataclasses import dataclass

from lapledger.ledger.errors import UserError
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger, cut_now, head_now
from lapledger.ledger.store.sql.engine import reading

_FORM = "64 hex digits, @ and a cut, as `lap verify --print-head` printed it"
_HEAD = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RecordedHead:
    """A head that was recorded outside the ledger, with the cut that it covers."""

    cut: Cut
    head: str

    @classmethod
    def parse(cls, text: str) -> "RecordedHead":
        """The head in a text; UserError when it is malformed."""
        head, at, cut = text.strip().partition("@")
        if not at or not _HEAD.fullmatch(head):
            raise UserError(f"{text[:100]!r} is not a head; give {_FORM}")
        return cls(Cut.parse(cut), head)

    def __str__(self) -> str:
        return f"{self.head}@{self.cut}"


def current_head(ledger: Ledger) -> RecordedHead:
    """The head of everything admitted and sealed now, to be stored elsewhere."""
    with reading(ledger.engine) as connection:
        return RecordedHead(cut_now(connection), head_now(connection))
