"""Where a command appends: its stream, with a producer of its own epoch, and a spool in front of a broker.

What a broker cannot take now waits in a file below the ledger's folder; a later command delivers what a dead one left.
"""

from collections.abc import Callable

from lapledger.ledger.disk import make_folder
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.ledger.streams.spool import Spooled, SpoolLimits, Waiting
from lapledger.ledger.streams.spool_file import SUFFIX, deliver_left_behind

FLUSH_SECONDS = 30.0
"""How long the end of a command waits for a broker that is away."""


class SpooledProducer:
    """A producer whose epoch is opened when something is first appended.

    `on_change` is called when the broker goes or comes back.
    """

    def __init__(
        self, ledger: Ledger, epoch: str, label: str, *, release: str, on_change: Callable[[Waiting], None]
    ) -> None:
        self.stream = ledger.stream()
        self._spool: Spooled | None = None
        if ledger.location.kafka is not None:
            folder = ledger.root / "spool"
            make_folder(folder)
            deliver_left_behind(self.stream, folder)
            limits = SpoolLimits(ledger.location.spool_bytes, ledger.location.spool_seconds)
            self._spool = Spooled(self.stream, folder / f"{epoch}{SUFFIX}", limits=limits, on_change=on_change)
        self.producer = Producer(self._spool or self.stream, epoch, label, release)

    def ready(self) -> None:
        """Returns when there is room for what more work will bring; SpoolFull when a full spool stays full."""
        if self._spool is not None:
            self._spool.ready()

    def finish(self) -> None:
        """Closes the epoch; Unavailable when the broker stays away: what waits is delivered by a later command."""
        self.producer.close()
        if self._spool is not None:
            self._spool.flush(FLUSH_SECONDS)

    def close(self) -> None:
        """Releases the files and connections."""
        if self._spool is not None:
            self._spool.close()
        self.stream.close()


def broker_message(waiting: Waiting) -> str:
    """What happened to the broker, for a person."""
    on_change = {
        "away": "the broker is away; what is appended waits on this machine",
        "full": f"the broker is away and the spool is full ({waiting.bytes >> 20} MiB); waiting for it",
        "back": "the broker is back, and what waited is delivered",
    }
    return on_change[waiting.what]
