"""The one failure of the kernel: an input that cannot be judged as it is.

The message is one line that says what is wrong, where, and what to do next. A program's own failure is data and never
this. Its base class is all that the kernel takes from the ledger.
"""

from lapledger.ledger.errors import UserError, nearest

__all__ = ["ReplayError", "nearest"]


class ReplayError(UserError):
    """A measurement or a criterion that the kernel refuses; exit code 2, as of every mistake of the user."""
