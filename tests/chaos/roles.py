"""What a victim does: the product's own producers, sinks and sealers, each a role with plain arguments.

Roles return what they have done, as JSON; a failure that a person would read is one line, with its exit code.
"""

import json
import logging
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lapledger.ledger import failpoint
from lapledger.ledger.errors import LapError
from lapledger.ledger.store.open_ledger import create_ledger
from tests.chaos import keepers, writers
from tests.chaos.checks import check_ledger_at
from tests.chaos.keepers import merge, seal_tail, trim
from tests.chaos.writers import campaign, reward, spool, write

ROLES: dict[str, Callable[..., Any]] = {role.__name__: role for role in (*writers.ROLES, *keepers.ROLES)}


def rehearse() -> None:
    """One short life of a ledger."""
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/ledger"
        create_ledger(Path(root), "identity", "now").close()
        for number in range(2):
            write(root, f"epoch-{number}", 6 * number, 6 * number + 6)
            seal_tail(root)
        merge(root)
        trim(root)
        spool(root, "epoch-2", 12, 24)
        campaign(root, "epoch-3")
        reward(root, "epoch-4")
        check_ledger_at(Path(root))


NEVER = 1 << 40


def passed(name: str, *args: Any) -> dict[str, int]:
    """How often a role reaches each crash point."""
    for point in failpoint.POINTS:
        failpoint.arm(point, NEVER)
    ROLES[name](*args)
    return {point: NEVER - left for point, left in failpoint.remaining_hits().items() if left < NEVER}


ROLES[passed.__name__] = passed


def play(role: Callable[..., Any], args: list[Any], crash: tuple[str, int, str] | None) -> int:
    """The exit code of a role; what it returns, or the line that it failed with, is printed.

    `crash` names a point, the hit that counts, and the signal that comes then.
    """
    logging.lastResort = logging.NullHandler()  # as the edge of every command does
    if crash is not None:
        failpoint.arm(crash[0], crash[1], by=signal.Signals[crash[2]])
    try:
        print(json.dumps(role(*args)))
    except LapError as error:
        print(f"lap: {error}")
        return error.exit_code
    return 0
