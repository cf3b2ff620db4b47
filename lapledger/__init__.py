"""An event-sourced experiment ledger with replayable evaluation: the command `lap` and the Python API.

    import lapledger as lap

    with lap.open("demo") as ledger:
        print(ledger.replay(tau=[100, 50, 30]))

Names load when they are first used: `import lapledger` imports nothing but this file.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapledger.api import Ledger as Ledger
    from lapledger.api import open as open  # noqa: A004  (read as `lap.open`)
    from lapledger.ledger.errors import LapError as LapError
    from lapledger.ledger.errors import UserError as UserError
    from lapledger.replay.criteria import Criterion as Criterion
    from lapledger.results import Comparison as Comparison
    from lapledger.results import Explanations as Explanations
    from lapledger.results import Picture as Picture
    from lapledger.results import Replay as Replay
    from lapledger.results import RewardTrace as RewardTrace
    from lapledger.results import Table as Table
    from lapledger.settings import Settings as Settings

_RESULTS = ("Comparison", "Explanations", "Picture", "Replay", "RewardTrace", "Table")
_HOMES = {
    "Criterion": "lapledger.replay.criteria",
    "LapError": "lapledger.ledger.errors",
    "Ledger": "lapledger.api",
    "Settings": "lapledger.settings",
    "UserError": "lapledger.ledger.errors",
    "open": "lapledger.api",
    **dict.fromkeys(_RESULTS, "lapledger.results"),
}

__all__ = [
    *("Comparison", "Criterion", "Explanations", "LapError", "Ledger", "Picture", "Replay", "RewardTrace"),
    *("Settings", "Table", "UserError", "open"),
]


def __getattr__(name: str) -> Any:
    """The public name, imported from its module on first use; AttributeError for any other."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lapledger' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion in a notebook."""
    return sorted({*globals(), *__all__})
