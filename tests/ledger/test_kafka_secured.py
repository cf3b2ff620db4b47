"""A broker behind TLS and passwords: the settings reach it, a wrong one is told in a line, no secret is ever told."""

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from lapledger.ledger.errors import LapError, UserError
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.stream import KafkaStream
from lapledger.stack.kafka import Node
from lapledger.stack.processes import free_ports
from tests.support.processes import until
from tests.support.servers import own_cluster

PASSWORD = "an-open-sesame"  # noqa: S105  (of this test's own broker)
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_lap="{}";'


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who signs the certificates of the broker and of its clients."""
    return trustme.CA()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[KafkaSettings]:
    """Settings of a broker that asks for a certificate and a password; each of them is right."""
    folder = tmp_path_factory.mktemp("secured")
    with own_cluster(folder, nodes=1) as server:
        (node,) = server.nodes()
        server.stop()
        ports = free_ports(2, SystemRandom())
        with (node.folder / "server.properties").open("a", encoding="ascii") as file:
            file.write(listeners(node, authority, *ports))
        server.start()
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        mine = authority.issue_cert("client.example")
        mine.private_key_pem.write_to_path(str(folder / "key.pem"))
        mine.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
        yield KafkaSettings(
            servers=tuple(f"127.0.0.1:{port}" for port in ports),
            security_protocol="SASL_SSL",
            sasl_mechanism="PLAIN",
            sasl_username="lap",
            sasl_password=PASSWORD,
            ssl_cafile=str(folder / "ca.pem"),
            ssl_certfile=str(folder / "cert.pem"),
            ssl_keyfile=str(folder / "key.pem"),
            timeout_seconds=15,
        )


def listeners(node: Node, authority: trustme.CA, secured: int, open_: int) -> str:
    """The lines that add two listeners to a broker's settings: with TLS and a password, and with a password alone."""
    folder = node.folder
    certificate = authority.issue_cert("127.0.0.1")
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    store, trusted = folder / "store.pem", folder / "trusted.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    store.write_bytes(pem + b"".join(pem_part.bytes() for pem_part in certificate.cert_chain_pems))
    trusted.write_bytes(authority.cert_pem.bytes())
    ports = {"PLAINTEXT": node.client_port, "CONTROLLER": node.controller_port, "SECURED": secured, "OPEN": open_}
    kinds = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "SECURED": "SASL_SSL", "OPEN": "SASL_PLAINTEXT"}
    name = "listener.name.secured"
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in kinds.items()),
        f"{name}.ssl.keystore.type": "PEM",
        f"{name}.ssl.keystore.location": store,
        f"{name}.ssl.truststore.type": "PEM",
        f"{name}.ssl.truststore.location": trusted,
        f"{name}.ssl.client.auth": "required",
    }
    for name in ("listener.name.secured", "listener.name.open"):
        settings |= {
            f"{name}.sasl.enabled.mechanisms": "PLAIN",
            f"{name}.plain.sasl.jaas.config": JAAS.format(PASSWORD),
        }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def at(secured: KafkaSettings, protocol: str) -> KafkaSettings:
    """The listener that speaks a protocol, with what it asks for."""
    tls, plain = secured.bootstrap
    return replace(secured, servers=tls if protocol == "SASL_SSL" else plain, security_protocol=protocol)


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_records_travel_with_a_password(secured: KafkaSettings, protocol: str) -> None:
    """All calls of a stream: made, appended to, read, joined, trimmed."""
    settings = replace(at(secured, protocol), prefix=protocol)
    with closing(KafkaStream.create(settings)) as stream:
        stream.append("facts", 1, [Record({"a": "b"}, b"one"), Record({}, b"two")])
        assert [stored.record.payload for stored in stream.read("facts", 1, 0, 9)] == [b"one", b"two"]
        assert stream.ends()["facts", 1] == 2
        assert stream.identity("facts")
        stream.trim("facts", 1, 1)
        assert [stored.record.payload for stored in stream.read("facts", 1, 1, 9)] == [b"two"]
        group = stream.join("sinks", ["facts"], "member")
        until(lambda: ("facts", 1) in group.assigned(0.2), "an assignment")
        group.leave()


@pytest.mark.parametrize(
    "change", [{"sasl_password": "a-wrong-word"}, {"sasl_username": "nobody"}, {"sasl_mechanism": "SCRAM-SHA-256"}]
)
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_who_is_not_known_is_refused(
    secured: KafkaSettings, caplog: pytest.LogCaptureFixture, protocol: str, change: dict[str, str]
) -> None:
    """In one line that says what to check; neither it nor any log names a password."""
    caplog.set_level(logging.DEBUG)
    wrong = replace(secured, security_protocol=protocol, timeout_seconds=3, **change)
    with pytest.raises(LapError, match=r"check .*the user, the password and its rights") as caught:
        KafkaStream.create(at(wrong, protocol))
    assert "\n" not in str(caught.value)
    for output in (str(caught.value), repr(wrong), caplog.text):
        assert PASSWORD not in output
        assert "a-wrong-word" not in output


def test_a_broker_of_another_authority_is_not_trusted(secured: KafkaSettings, tmp_path: Path) -> None:
    """Nothing is sent to it: the call gives up in one line that names the address."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    with pytest.raises(
        UserError, match=r"no TLS with the broker 127\.0\.0\.1.*certificate verify failed.*check"
    ) as caught:
        KafkaStream.create(replace(at(secured, "SASL_SSL"), ssl_cafile=str(tmp_path / "other.pem"), timeout_seconds=3))
    assert "\n" not in str(caught.value)


def test_without_a_certificate_of_ours_nobody_comes_in(secured: KafkaSettings) -> None:
    """The broker asks for one."""
    with pytest.raises(LapError, match=r"the broker 127\.0\.0\.1.*check"):
        KafkaStream.create(replace(at(secured, "SASL_SSL"), ssl_certfile="", ssl_keyfile="", timeout_seconds=3))
