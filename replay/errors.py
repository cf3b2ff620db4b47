"""The one failure of the scoring engine: an input that cannot be judged as it is.

The message is one line that says what is wrong, where, and what to do next. A program's own failure is data and never
this. Its base class is all that the scoring engine takes from the ledger.
"""

from lapledger.ledger.errors import UserError, nearest

__all__ = ["ReplayError", "nearest"]


class ReplayError(UserError):
    """A measurement or a criterion that the scoring engine refuses; exit code 2, as of every mistake of the user."""
