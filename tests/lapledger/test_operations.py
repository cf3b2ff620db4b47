"""What an operator asks and does: is it well, how much room is left, copy it elsewhere, and what a reserve keeps."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lapledger.ledger.events import EVENTS, FilterDecided, to_batch
from lapledger.ledger.frames.frame import Link, Record, encode, genesis, make_frame
from lapledger.ledger.ops.health import DEGRADED, FAILING, OK
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.ledger.store.sql.leases import Term, take_partition
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.producer import partition_of
from lapledger.workflows.session import now_ms
from tests.support.lap import Done, lap, process, sql, well
from tests.support.packages import ACCEPTED, make_package

TOO_MUCH = "100000000"
"""MiB of a reserve that no disk of a test has."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with one imported problem."""
    well("ledger", "init", "--ledger", tmp_path / "ledger")
    make_package(tmp_path / "sums", {"accepted/quick.py": ACCEPTED})
    well("import", "icpc", tmp_path / "sums", "--ledger", tmp_path / "ledger")
    return tmp_path / "ledger"


def records(epoch: str, numbers: range) -> tuple[int, list[Record]]:
    """A partition, and a producer's chain of frames for it, one decision each."""
    partition = partition_of("facts", "p")
    previous, made = genesis(epoch, "facts", partition), []
    for number in numbers:
        event = FilterDecided(
            problem_id="p",
            subject="test",
            subject_id=str(number),
            rule="r",
            campaign_id=None,
            kept=True,
            reason="",
            figure=None,
        )
        link = Link(epoch, "facts", partition, number, previous)
        made.append(make_frame(EVENTS["filter.decided", 1], "p", link, to_batch([event])))
        previous = made[-1].digest
    return partition, [encode(frame) for frame in made]


def put(ledger: Path, partition: int, some: list[Record]) -> None:
    """Appends records to the ledger's stream."""
    with closing(open_ledger(ledger)) as opening, closing(opening.stream()) as stream:
        stream.append("facts", partition, some)


def status(ledger: Path) -> tuple[str, dict[str, Any], int]:
    """The state, the checks by name, and the exit code of `lap status`."""
    done = lap("status", "--json", "--ledger", ledger)
    checks = {check["name"]: check for check in done.json["checks"]}
    return done.json["state"], checks, done.code


def admitted(ledger: Path) -> int:
    """Frames that the ledger admitted."""
    return sum(
        part["admitted"] for part in well("status", "--partitions", "--ledger", ledger, "--json").json["partitions"]
    )


def test_a_well_ledger_is_ok(ledger: Path) -> None:
    """Every part is named with its state; for people as a table, for probes as JSON and an exit code."""
    state, checks, code = status(ledger)
    assert (state, code) == (OK, 0)
    assert {"database", "stream", "lag", "gaps", "quarantine", "tail", "segments", "disk"} == checks.keys()
    assert {check["state"] for check in checks.values()} == {OK}
    assert checks["database"]["figures"]["admitted"] == admitted(ledger)
    assert "ledger state: ok" in well("status", "--ledger", ledger).out


def test_what_waits_is_reported_by_partition(ledger: Path) -> None:
    """In records; when nobody holds the partition's lease, what to start."""
    partition, some = records("epoch-0", range(3))
    put(ledger, partition, some)
    state, checks, code = status(ledger)
    assert (state, code, checks["lag"]["state"]) == (DEGRADED, 0, DEGRADED)
    assert checks["lag"]["figures"]["partitions"] == {f"facts/{partition}": 3}
    assert "lap sink" in checks["lag"]["message"]
    well("seal", "--ledger", ledger)
    assert status(ledger)[0] == OK


def test_gaps_and_quarantine_degrade_and_a_fork_is_reported(ledger: Path) -> None:
    """Exit code 0, as no probe that starts something anew would mend it: somebody must look who used an epoch twice."""
    partition, some = records("epoch-0", range(4))
    put(ledger, partition, [some[0], some[3], Record({}, b"broken")])
    well("seal", "--ledger", ledger)
    state, checks, code = status(ledger)
    assert (state, code) == (DEGRADED, 0)
    assert (checks["gaps"]["state"], checks["gaps"]["figures"]) == (DEGRADED, {"frames": 2})
    assert (checks["quarantine"]["state"], checks["quarantine"]["figures"]["records"]) == (DEGRADED, 1)
    put(ledger, partition, records("epoch-0", range(5))[1][4:] + records("epoch-0", range(1, 2))[1])
    well("seal", "--ledger", ledger)
    state, checks, code = status(ledger)
    assert (state, checks["quarantine"]["state"], code) == (DEGRADED, DEGRADED, 0)
    assert checks["quarantine"]["figures"]["reasons"]["fork"] == 1
    assert "two producers used one identity" in checks["quarantine"]["message"]


def test_another_stream_in_its_location_fails(ledger: Path, tmp_path: Path) -> None:
    """Whoever goes on there would mix two streams; a missing one fails too."""
    well("ledger", "init", "--ledger", tmp_path / "other")
    for path in ledger.glob("stream.sqlite*"):
        path.unlink()
    assert status(ledger)[1]["stream"]["state"] == FAILING
    shutil.copy(tmp_path / "other" / "stream.sqlite", ledger / "stream.sqlite")
    state, checks, code = status(ledger)
    assert (state, checks["stream"]["state"], code) == (FAILING, FAILING, 1)
    assert "recreated" in checks["stream"]["message"]


def test_a_holder_whose_clock_was_ahead_is_named(ledger: Path) -> None:
    """A day ahead: it holds nobody up, and the status says who it was."""
    with closing(open_ledger(ledger)) as opening:
        assert take_partition(opening.engine, "facts", 2, Term("tomorrow", now_ms() + 24 * 3_600_000)) == 1
    _, checks, code = status(ledger)
    assert (checks["clocks"]["state"], code) == (DEGRADED, 0)
    assert checks["clocks"]["message"].startswith("tomorrow took 1 partition by a clock that was 23.8 h ahead;")
    assert checks["lag"]["figures"]["holders"] == {}
    with closing(open_ledger(ledger)) as opening:
        assert take_partition(opening.engine, "facts", 2, Term("today", now_ms())) == 2
    _, checks, _ = status(ledger)
    assert "clocks" not in checks
    assert checks["lag"]["figures"]["holders"] == {"facts/2": "today"}


@pytest.mark.parametrize(
    "spelling",
    [
        "user:hunter2@127.0.0.1:1",
        "sasl_ssl://u:hunter2@h:1",
        "127.0.0.1:1,u:hunter2@127.0.0.1:2",
        "u:hunt@hunter2@127.0.0.1:1",
        "127.0.0.1:1?sasl.password=hunter2",
    ],
)
@pytest.mark.parametrize("command", [("status",), ("status", "--json"), ("verify",), ("ledger", "init")])
def test_a_password_in_the_broker_s_address_is_refused_and_never_shown(
    ledger: Path, spelling: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names the settings for it."""
    monkeypatch.setenv("LAP_KAFKA", spelling)
    done = lap(*command, "--ledger", ledger)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "kafka_password" in done.err
    assert "hunter2" not in done.err


def test_records_that_no_reader_knows_degrade(ledger: Path) -> None:
    """They are counted by the status and named by the proof, which they do not touch."""
    with closing(open_ledger(ledger)) as opening, closing(opening.stream()) as stream:
        stream.append("facts", 9, [Record({}, b"x")])
        stream.append("tomorrow", 0, [Record({}, b"x")] * 2)
    state, checks, code = status(ledger)
    assert (state, checks["stream"]["state"], code) == (DEGRADED, DEGRADED, 0)
    lines = (
        "1 record lies in 'facts', partition 9, which no reader knows",
        "2 records lie in 'tomorrow', partition 0, which no reader knows",
    )
    notes = well("verify", "--ledger", ledger, "--json").json["notes"]
    for line in lines:
        assert line in checks["stream"]["message"]
        assert any(line in note for note in notes)


def test_no_ledger_is_the_users_mistake(tmp_path: Path) -> None:
    """One line and exit code 2, as everywhere."""
    done = lap("status", "--ledger", tmp_path / "none")
    assert (done.code, done.out) == (2, "")
    assert "there is no ledger" in done.err


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def dead_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def servers_down(ledger: Path, port: int) -> Done:
    """`lap status` in a process of its own, its database and brokers being at a port."""
    address = f"postgresql://nobody:geheim@127.0.0.1:{port}/lap"
    return process("status", "--json", "--ledger", ledger, LAP_SQL=address, LAP_KAFKA=f"127.0.0.1:{port}")


@pytest.mark.parametrize("kind", ["silent_server", "dead_port"])
def test_servers_that_are_down_are_failing_checks(ledger: Path, kind: str, request: pytest.FixtureRequest) -> None:
    """Both are told, with what to do, without a traceback or a password, and the disk is looked at all the same."""
    done = servers_down(ledger, request.getfixturevalue(kind))
    checks = {check["name"]: check for check in done.json["checks"]}
    assert (done.code, done.json["state"], done.err) == (1, FAILING, "")
    assert (checks["database"]["state"], checks["stream"]["state"], checks["disk"]["state"]) == (FAILING, FAILING, OK)
    assert "answer" in checks["database"]["message"]
    assert "answer" in checks["stream"]["message"]
    assert "geheim" not in done.out


def test_a_ledger_on_servers_is_ok(
    ledger: Path, tmp_path: Path, postgres_database: str, kafka_settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied there with one command; checksums are looked at too. And a backup brings it back into a folder."""
    parts = ("--to-sql", postgres_database, "--to-kafka", kafka_settings.address)
    prefix = ("--to-kafka-prefix", kafka_settings.prefix)
    moved = well("ledger", "copy", tmp_path / "moved", *parts, *prefix, "--ledger", ledger, "--json").json
    args = {"SQL": postgres_database, "KAFKA": kafka_settings.address, "KAFKA_PREFIX": kafka_settings.prefix}
    with monkeypatch.context() as patch:
        for name, text in args.items():
            patch.setenv(f"LAP_{name}", text)
        state, checks, code = status(tmp_path / "moved")
        assert (state, code, checks["checksums"]["state"]) == (OK, 0, OK)
        assert well("verify", "--ledger", tmp_path / "moved", "--json").json["head"] == moved["head"]
        make_package(tmp_path / "more", {"accepted/quick.py": ACCEPTED}, name="More")
        well("import", "icpc", tmp_path / "more", "--ledger", tmp_path / "moved")
        well("ledger", "backup", tmp_path / "backup", "--ledger", tmp_path / "moved")
        head = well("verify", "--print-head", "--ledger", tmp_path / "moved").out
    assert sql(tmp_path / "backup", "SELECT name FROM problem ORDER BY name") == [["More"], ["Sums"]]
    well("verify", "--head", head.strip(), "--ledger", tmp_path / "backup")


def test_a_backup_is_restored_into_an_empty_location(ledger: Path, tmp_path: Path) -> None:
    """What waited on the stream is in it; the restored ledger is the same, and what happened since is not in it."""
    partition, some = records("epoch-0", range(3))
    put(ledger, partition, some)
    well("ledger", "backup", tmp_path / "backup", "--ledger", ledger)
    text = well("verify", "--print-head", "--ledger", ledger).out.strip()
    put(ledger, partition, records("epoch-1", range(1))[1])
    well("seal", "--ledger", ledger)
    restored = well("ledger", "restore", tmp_path / "backup", "--ledger", tmp_path / "restored", "--json").json
    assert restored["rows"]["frame"] == admitted(ledger) - 1
    well("verify", "--head", text, "--ledger", tmp_path / "restored")
    well("import", "icpc", tmp_path / "sums", "--ledger", tmp_path / "restored")
    well("seal", "--ledger", tmp_path / "restored")
    well("verify", "--ledger", tmp_path / "restored")
    again = lap("ledger", "restore", tmp_path / "backup", "--ledger", tmp_path / "restored")
    assert (again.code, "holds a copy of this ledger already" in again.err) == (2, True)
    second = lap("ledger", "restore", tmp_path / "none", "--ledger", tmp_path / "restored")
    assert (second.code, "there is no ledger" in second.err) == (2, True)


def test_writers_leave_the_reserve_and_readers_go_on(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appending, admitting and sealing stop with exit code 2 and nothing half-written; with room they go on."""
    partition, some = records("epoch-0", range(3))
    head = well("verify", "--print-head", "--ledger", ledger).out
    with monkeypatch.context() as patch:
        patch.setenv("LAP_RESERVE_MB", TOO_MUCH)
        make_package(tmp_path / "more", {"accepted/quick.py": ACCEPTED}, name="More")
        for args in (("import", "icpc", tmp_path / "more"), ("seal",)):
            done = lap(*args, "--ledger", ledger)
            assert (done.code, done.err.count("\n")) == (2, 1)
            assert f"{TOO_MUCH} MiB stay in reserve" in done.err
            assert "reserve_mb" in done.err
        state, checks, code = status(ledger)
        assert (state, checks["disk"]["state"], code) == (FAILING, FAILING, 1)
        assert well("verify", "--print-head", "--ledger", ledger).out == head
    put(ledger, partition, some)
    with monkeypatch.context() as patch:
        patch.setenv("LAP_RESERVE_MB", TOO_MUCH)
        done = lap("seal", "--ledger", ledger)
        assert (done.code, "reserve_mb" in done.err) == (2, True)
        assert well("verify", "--print-head", "--ledger", ledger).out == head
    assert list(ledger.rglob("*.part")) == []
    well("import", "icpc", tmp_path / "more", "--ledger", ledger)
    well("seal", "--ledger", ledger)
    assert sql(ledger, "SELECT name FROM problem ORDER BY name") == [["More"], ["Sums"]]
    kinds = {kind["name"]: kind["rows"] for kind in well("ledger", "du", "--ledger", ledger, "--json").json["types"]}
    assert kinds["filter.decided"] == 3
    well("verify", "--ledger", ledger)


def test_du_reports_growth_once_there_is_history(ledger: Path) -> None:
    """Unknown within the first hour; then bytes a day by the age of the files, and how long the disk will do."""
    well("seal", "--ledger", ledger)
    fresh = well("ledger", "du", "--ledger", ledger, "--json").json
    assert (fresh["bytes_a_day"], fresh["days_to_full"]) == (None, None)
    assert "unknown" in well("ledger", "du", "--ledger", ledger).out
    files = [path for name in ("segments", "blobs") for path in (ledger / name).rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    os.utime(files[0], (1_700_000_000 + 2 * 86_400,) * 2)
    used = well("ledger", "du", "--ledger", ledger, "--json").json
    complete = used["sql_bytes"] + used["stream_bytes"] + used["blob_bytes"] + used["segment_bytes"]
    assert used["bytes_a_day"] == pytest.approx(complete / 2)
    assert used["days_to_full"] == pytest.approx((used["free_bytes"] - (256 << 20)) / (complete / 2))


def test_a_ledger_on_kafka_is_made_without_leaving_a_connection(
    tmp_path: Path, kafka_settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many are made in one process by tests and services: no file or socket of the broker's client stays open."""
    monkeypatch.setenv("LAP_KAFKA", kafka_settings.address)
    monkeypatch.setenv("LAP_KAFKA_PREFIX", kafka_settings.prefix)
    well("ledger", "init", "--ledger", tmp_path / "first")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(3):
        well("ledger", "init", "--ledger", tmp_path / f"ledger-{number}")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
