"""Where a Kafka cluster is and how to speak to it: plain values, checked once. No client is made here."""

import re
from dataclasses import dataclass, field

from lapledger.ledger.errors import UserError

SECURITY = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
COMPRESSION = ("", "lz4", "zstd")
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s@/?#:=\[\]]+)(:[0-9]{1,5})?")
_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A cluster and a prefix of topics; empty texts and a `replication` of 0 leave the choice to Kafka.

    Every call gives up after about `timeout_seconds`. UserError for what no cluster could take.
    """

    servers: str | tuple[str, ...]
    prefix: str = "lap"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    ssl_cafile: str = ""
    ssl_certfile: str = ""
    ssl_keyfile: str = ""
    replication: int = 0
    timeout_seconds: float = 30.0
    compression: str = ""

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise UserError("no Kafka broker is named; write HOST:PORT, several separated by commas")
        if not all(_BROKER.fullmatch(server) for server in self.bootstrap):  # never shown: it may hold a password
            raise UserError(
                "a Kafka broker is HOST:PORT, several separated by commas; a user and a password are settings of their"
                " own (kafka_username, kafka_password)"
            )
        if not _PREFIX.fullmatch(self.prefix):
            raise UserError(f"{self.prefix!r} cannot begin a topic's name; use letters, digits, dots and dashes")
        if self.security_protocol not in SECURITY:
            raise UserError(f"Kafka knows no security protocol {self.security_protocol!r}; choose of {SECURITY}")
        if self.compression not in COMPRESSION:
            raise UserError(f"compression {self.compression!r} is not supported; choose lz4, zstd or nothing")
        if self.timeout_seconds <= 0 or self.replication < 0:
            raise UserError("a Kafka timeout is above 0 seconds, and a replication 0 or more")

    @property
    def bootstrap(self) -> tuple[str, ...]:
        """The bootstrap brokers, each `host:port`."""
        named = self.servers.split(",") if isinstance(self.servers, str) else self.servers
        return tuple(server.strip() for server in named if server.strip())

    @property
    def address(self) -> str:
        """The brokers, for messages."""
        return ",".join(self.bootstrap)

    def topic(self, stream: str) -> str:
        """The topic that carries a stream."""
        return f"{self.prefix}.{stream}"
