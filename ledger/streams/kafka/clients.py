"""Makes kafka-python's clients from settings and translates its errors, once for all who use them.

Nothing else in the tree knows kafka-python's settings or errors.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lapledger.ledger.errors import Fault, LapError, Unavailable, UserError
from lapledger.ledger.streams.kafka.records import MAX_MESSAGE_BYTES
from lapledger.ledger.streams.kafka.settings import KafkaSettings

T = TypeVar("T")

FETCH_BYTES = 8 << 20
GRACE_SECONDS = 3.0
"""How long a topic may be unknown to a broker that has just learned of it."""

_BACKOFF_SECONDS = 0.05
_TOO_LARGE = ("MessageSizeTooLargeError", "RecordListTooLargeError")
_MISSING = ("UnknownTopicOrPartitionError", "UnknownTopicIdError")
_AWAY = ("RetriableError", "BrokerNotAvailableError", "OutOfOrderSequenceNumberError", "UnknownProducerIdError")
"""Errors after which the same call may succeed: a new producer has a new sequence."""

_VERBOSE_LOGGERS = ("kafka.net.connection", "kafka.net.transport", "kafka.protocol.parser")
"""Loggers that write every request at level DEBUG, the password's too."""

LOGIN_MS = 8000
"""How long a broker that asks for a password is tried: kafka-python repeats a wrong one until its time is over."""
_CERTIFICATE = "CERTIFICATE"
_REFUSED = (
    "SaslAuthenticationFailedError",
    "UnsupportedSaslMechanismError",
    "IllegalSaslStateError",
    "AuthorizationError",
)


class Secret(str):
    """A password that does not show itself in a log of settings."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def client_config(settings: KafkaSettings) -> dict[str, Any]:
    """What every client is given; UserError when a certificate's file is missing."""
    timeout = int(1000 * settings.timeout_seconds)
    config: dict[str, Any] = {
        "bootstrap_servers": list(settings.bootstrap),
        "client_id": "lapledger",
        "security_protocol": settings.security_protocol,
        "request_timeout_ms": max(100, timeout // 2),
        "bootstrap_timeout_ms": min(timeout, LOGIN_MS) if settings.sasl_mechanism else timeout,
        "reconnect_backoff_max_ms": 1000,
    }
    security = {
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": Secret(settings.sasl_password),
        "ssl_cafile": _file(settings.ssl_cafile),
        "ssl_certfile": _file(settings.ssl_certfile),
        "ssl_keyfile": _file(settings.ssl_keyfile),
    }
    return config | {name: value for name, value in security.items() if value}


def producer_config(settings: KafkaSettings) -> dict[str, Any]:
    """What a producer is given: idempotent, acknowledged by all in-sync replicas, one batch of records at a time.

    It lingers until it is flushed, so that records handed over together share one batch, which is stored atomically.
    """
    timeout = int(1000 * settings.timeout_seconds)
    return client_config(settings) | {
        "acks": "all",
        "enable_idempotence": True,
        "max_in_flight_requests_per_connection": 5,
        "delivery_timeout_ms": timeout,
        "linger_ms": timeout // 4,
        "request_timeout_ms": max(100, timeout // 2),
        "max_block_ms": timeout,
        "batch_size": MAX_MESSAGE_BYTES,
        "max_request_size": MAX_MESSAGE_BYTES,
        "compression_type": settings.compression or None,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    }


def consumer_config(settings: KafkaSettings) -> dict[str, Any]:
    """What a consumer is given: checksums checked, and no position of its own choice, ever."""
    return client_config(settings) | {
        "check_crcs": True,
        "auto_offset_reset": "none",
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
        "max_partition_fetch_bytes": FETCH_BYTES,
        "fetch_max_bytes": FETCH_BYTES,
        "fetch_max_wait_ms": 10,  # only what exists is fetched, and a fetch that waits would hold up other partitions
        "retry_backoff_ms": 20,
        "metrics_enabled": False,
    }


def _file(path: str) -> str:
    if path and not Path(path).is_file():
        raise UserError(f"there is no file {path}, which the Kafka settings name")
    return path


def library() -> Any:
    """The package kafka-python; UserError when it is not installed."""
    try:
        import kafka
    except ModuleNotFoundError:
        raise UserError("the package kafka-python is missing; install it: pip install 'lapledger[kafka]'") from None
    return kafka


def open_client(kind: str, config: Mapping[str, Any], *topics: str) -> Any:
    """A client of kafka-python by the name of its class; one that finds no broker leaves no thread behind."""
    kafka = library()
    made: list[Any] = []

    def remembered(*arguments: Any, **more: Any) -> Any:
        from kafka.net.compat import KafkaNetClient

        patience = more["request_timeout_ms"]  # else a broker that takes connections and is silent costs 10 s
        more |= {"socket_connection_setup_timeout_ms": patience, "socket_connection_setup_timeout_max_ms": patience}
        made.append(KafkaNetClient(*arguments, **more))
        return made[-1]

    if "sasl_mechanism" in config:
        for name in _VERBOSE_LOGGERS:
            logging.getLogger(name).setLevel(logging.INFO)
    with _reasons() as reasons:
        try:
            return getattr(kafka, kind)(*topics, **config, kafka_client=remembered)
        except ValueError as error:
            raise UserError(f"the Kafka settings are wrong: {error}") from error
        except kafka.errors.KafkaError:
            for client in made:
                client.close()
            for reason in filter(_is_refusal, reasons.errors):
                raise reason from None
            raise


class _Reasons(logging.Handler):
    """Keeps why connections failed: kafka-python only logs it, retries, and reports a timeout in the end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[Exception] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the errors among the arguments of a log record."""
        self.errors += [value for value in record.args or () if isinstance(value, Exception)]


@contextmanager
def _reasons() -> Iterator[_Reasons]:
    log, reasons = logging.getLogger("kafka"), _Reasons()
    log.addHandler(reasons)
    try:
        yield reasons
    finally:
        log.removeHandler(reasons)


def _is_refusal(error: Exception) -> bool:
    """Whether no later try could go better: the user, the password, its rights or a certificate are wrong."""
    kinds = {cls.__name__ for cls in type(error).__mro__}
    return bool(kinds & set(_REFUSED)) or _CERTIFICATE in str(error).upper()


@contextmanager
def translated(settings: KafkaSettings, what: str) -> Iterator[None]:
    """Turns kafka-python's errors into ours, in one line; `what` names the failed operation."""
    errors = library().errors
    try:
        yield
    except errors.KafkaError as error:
        raise _fault(error, settings, what) from error


def _fault(error: Exception, settings: KafkaSettings, what: str) -> LapError:
    kinds = [cls.__name__ for cls in type(error).__mro__]
    kind, address = kinds[0].removesuffix("Error"), settings.address
    if any(name in kinds for name in _MISSING):
        return UserError(f"{what}: there is no such topic on {address}; make it with `lap ledger init`")
    if any(name in kinds for name in _TOO_LARGE):
        return Fault(f"{what}: a record is too large for the broker {address}, which takes {MAX_MESSAGE_BYTES} bytes")
    if any(name in kinds for name in _REFUSED):
        return UserError(
            f"{what}: the broker {address} refuses us ({kind}); check the user, the password and its rights"
        )
    if _CERTIFICATE in str(error).upper():
        return UserError(
            f"{what}: no TLS with the broker {address} ({error}); check the certificates and whom they name"
        )
    if "FencedInstanceIdError" in kinds:
        return UserError(f"{what}: another process has the same name in this group; give each a distinct name")
    if "UnsupportedCodecError" in kinds:
        return UserError(f"{what}: {error}; install what decompresses it: pip install 'lapledger[kafka]' python-snappy")
    if "KafkaConfigurationError" in kinds:
        return UserError(f"{what}: the Kafka settings are wrong ({error})")
    if any(name in kinds for name in _AWAY):
        also = ", and the user, the password and its rights" if settings.sasl_mechanism else ""  # or it waits in vain
        return Unavailable(
            f"{what}: the broker {address} does not answer ({kind}); check that it runs{also}, and run it again"
        )
    return Fault(f"{what}: the broker {address} refuses it ({kind}); see its log")


def persistently(settings: KafkaSettings, call: Callable[[], T]) -> T:
    """The result of a call, repeated while the broker is away or its leaders change, until the timeout."""
    errors = library().errors
    started = time.monotonic()
    while True:
        try:
            return call()
        except errors.RetriableError as error:
            known = not isinstance(error, errors.UnknownTopicOrPartitionError)
            if time.monotonic() - started > (settings.timeout_seconds if known else GRACE_SECONDS):
                raise
        time.sleep(_BACKOFF_SECONDS)
