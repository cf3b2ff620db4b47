"""Apache Kafka (KRaft) from wheels and Maven Central: one node, or several on one machine for tests of failure.

Layout: `layout.json` (cluster id and ports, which stay), for each node `node-N/` with its settings, log, pid, data.
"""

import json
import os
import secrets
import signal
from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import Any

from lapledger.ledger.disk import make_private
from lapledger.ledger.errors import Fault, UserError, io_fault
from lapledger.stack.kafka_node import USER, Node, java, properties
from lapledger.stack.processes import free_ports, listens, start, wait_until

START_SECONDS = 90.0
LAYOUT = "layout.json"


class KafkaServer:
    """A broker, or several, in a folder. The object holds no process: another one with the same folder can stop it."""

    def __init__(self, folder: Path, nodes: int = 1, password: str = "") -> None:
        """Nothing is started or written yet; a folder used before keeps its number of nodes and its password."""
        self.folder = folder.resolve()
        self._count, self._password = nodes, password

    @property
    def bootstrap(self) -> str:
        """Where clients connect: `host:port` of every node, separated by commas; UserError before the first start."""
        nodes = self.nodes()
        if not nodes:
            raise UserError(f"no broker was ever started in {self.folder}; start it by `lap up`")
        return ",".join(f"127.0.0.1:{node.client_port}" for node in nodes)

    def nodes(self) -> tuple[Node, ...]:
        """Every node of the folder, running or not; none before the first start."""
        layout = self._layout()
        return tuple(
            Node(number, self.folder / f"node-{number}", *ports)
            for number, ports in enumerate(layout.get("ports", ()), start=1)
        )

    def running(self) -> tuple[int, ...]:
        """Numbers of the nodes whose processes live."""
        return tuple(node.number for node in self.nodes() if node.pid is not None)

    def start(self, seconds: float = START_SECONDS) -> None:
        """Starts every node that does not run and returns when all answer; what it started ends when one fails.

        The data of an earlier run are kept. UserError when a package is missing, Fault when a broker does not come up.
        """
        started: list[Node] = []
        try:
            if not self.nodes() or len(self.running()) < len(self.nodes()):
                command = java()
                self._make(command)
                started += [node for node in self.nodes() if node.pid is None]
                for node in started:
                    _run(node, command)
            self._wait(seconds)
        except BaseException:  # Ctrl-C too leaves nothing behind
            for node in started:
                node.end(signal.SIGKILL)
            raise

    def start_node(self, number: int, seconds: float = START_SECONDS) -> None:
        """Starts one node again and returns when it is at work."""
        node = self._node(number)
        if node.pid is None:
            _run(node, java())
        _wait_for(node, seconds)

    def stop(self) -> tuple[int, ...]:
        """Ends every node, cleanly if it does so in time; pids of the ended ones."""
        pids = tuple(node.pid for node in self.nodes())
        return tuple(pid for node, pid in zip(self.nodes(), pids, strict=True) if pid and node.end(signal.SIGTERM))

    def kill(self, number: int | None = None) -> None:
        """Ends one node, or all, by SIGKILL, as a power cut would."""
        for node in self.nodes() if number is None else [self._node(number)]:
            node.end(signal.SIGKILL)

    def signal(self, sign: signal.Signals, number: int = 1) -> None:
        """Sends a signal to a node, to freeze or thaw it; Fault when it does not run."""
        pid = self._node(number).pid
        if pid is None:
            raise Fault(f"node {number} of {self.folder} does not run")
        os.kill(pid, sign)

    def _node(self, number: int) -> Node:
        for node in self.nodes():
            if node.number == number:
                return node
        raise UserError(f"there is no node {number} in {self.folder}")

    def _layout(self) -> dict[str, Any]:
        file = self.folder / LAYOUT
        try:
            layout: dict[str, Any] = json.loads(file.read_text())
        except FileNotFoundError:
            return {}
        except ValueError:
            raise UserError(f"{file} is broken; delete {self.folder} and start anew") from None
        return layout

    def _make(self, command: list[str]) -> None:
        if not self._layout():
            ports = free_ports(2 * self._count, SystemRandom())
            pairs = [ports[2 * node : 2 * node + 2] for node in range(self._count)]
            cluster = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=").replace("-", "A")
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                part = self.folder / f".{LAYOUT}.part"
                part.write_text(json.dumps({"cluster": cluster, "ports": pairs}))
                part.replace(self.folder / LAYOUT)
            except OSError as error:
                raise io_fault(error, f"cannot use {self.folder}") from error
        for node in self.nodes():
            if not node.formatted:
                self._format(node, command)

    def _format(self, node: Node, command: list[str]) -> None:
        node.folder.mkdir(exist_ok=True)
        settings = node.folder / "server.properties"
        make_private(settings)
        settings.write_text(properties(node, self.nodes(), self._password))
        log = node.folder / "format.log"
        arguments = [
            *command,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            self._layout()["cluster"],
            "-c",
            str(settings),
        ]
        try:
            start(arguments, log, node.folder / "pid")
            wait_until(lambda: node.pid is None, START_SECONDS)
        finally:
            node.end(signal.SIGKILL)
        if not node.formatted:
            raise Fault(f"cannot prepare {node.folder}: {_last_line(log)}; see {log}")

    def _wait(self, seconds: float) -> None:
        from lapledger.ledger.streams.kafka.settings import KafkaSettings
        from lapledger.ledger.streams.kafka.stream import brokers

        for node in self.nodes():
            _wait_for(node, seconds)
        settings = KafkaSettings(servers=self.bootstrap, timeout_seconds=seconds)
        if self._password:
            settings = replace(
                settings,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_username=USER,
                sasl_password=self._password,
            )
        if not wait_until(lambda: brokers(settings) >= len(self.nodes()), seconds):
            raise Fault(f"the brokers in {self.folder} do not find each other; see their server.log")


def _wait_for(node: Node, seconds: float) -> None:
    wait_until(lambda: node.pid is None or node.started, seconds)
    if node.pid is None or not node.started:
        log = node.folder / "server.log"
        raise Fault(f"the broker in {node.folder} does not start: {_last_line(log)}; see {log}")


def _run(node: Node, command: list[str]) -> None:
    for port in (node.client_port, node.controller_port):
        if listens(port):
            raise UserError(
                f"port {port} of the broker in {node.folder} is taken by another program; end that one first"
            )
    log = node.folder / "server.log"
    if log.exists():
        log.replace(log.with_name("server.log.before"))
    start([*command, "kafka.Kafka", str(node.folder / "server.properties")], log, node.folder / "pid")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    messages = [line.strip() for line in lines if line.strip() and not line.startswith("\tat ")]
    return messages[-1][:200] if messages else "it logged nothing"
