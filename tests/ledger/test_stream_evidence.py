"""The stream as evidence: what is admitted and not sealed rests on it, so no header of it, and no byte, may change."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.proof import verify
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from tests.ledger.facts import decision
from tests.support.lap import lap


def fill(ledger: Ledger, stream: LocalStream, *, sealed: bool = False) -> None:
    """Three decisions, admitted."""
    Producer(stream, "epoch", "test", "0").append([decision(n) for n in range(3)])
    drain(ledger, stream)
    if sealed:
        seal(ledger)


def test_every_header_of_an_unsealed_record_is_proven(ledger: Ledger, stream: LocalStream) -> None:
    """Each one altered by itself or taken away is a problem, as a rebuild would read the record from the stream."""
    fill(ledger, stream)
    assert verify(ledger, stream=stream).problems == ()
    with closing(sqlite3.connect(ledger.root / "stream.sqlite")) as connection:
        ((row, text),) = connection.execute("SELECT rowid, headers FROM record WHERE stream = 'facts'").fetchall()
        headers = json.loads(text)
        assert len(headers) == 15
        for name, value in headers.items():
            for altered in ({**headers, name: f"{value}0"}, {key: headers[key] for key in headers if key != name}):
                connection.execute("UPDATE record SET headers = ? WHERE rowid = ?", (json.dumps(altered), row))
                connection.commit()
                problems = verify(ledger, stream=stream).problems
                assert len(problems) == 1, name
                assert "of its stream was altered" in problems[0] or f"altered headers: {name}" in problems[0]


def garbled(data: bytes) -> bytes:
    """Every byte of the second half is another."""
    half = len(data) // 2
    return data[:half] + bytes(byte ^ 0x5A for byte in data[half:])


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("damage", [lambda _: b"", lambda data: data[:5000], lambda data: b"x" * len(data), garbled])
def test_a_damaged_stream_is_a_problem_where_facts_rest_on_it(
    ledger: Ledger, stream: LocalStream, tmp_path: Path, damage: object, *, sealed: bool
) -> None:
    """Exit code 1 with a line while frames are unsealed; a note where each is sealed."""
    fill(ledger, stream, sealed=sealed)
    stream.close()
    copy = Path(shutil.copytree(ledger.root, tmp_path / "damaged"))
    with closing(sqlite3.connect(copy / "stream.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        (copy / f"stream.sqlite{suffix}").unlink(missing_ok=True)
    file = copy / "stream.sqlite"
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    done = lap("verify", "--ledger", copy)
    assert "Traceback" not in done.err
    if sealed:
        assert (done.code, done.out.startswith("proven: ")) == (0, True), done
        assert "note: the ledger was not compared with its stream" in done.err
    else:
        assert done.code == 1
        assert "the ledger was not compared with its stream" in done.out
        assert "frames that are not sealed depend on it" in done.out


def test_a_stream_without_its_identity_is_one_line(ledger: Ledger, stream: LocalStream) -> None:
    """Writers refuse with what to do, and `lap verify` reports it."""
    fill(ledger, stream)
    stream.close()
    with closing(sqlite3.connect(ledger.root / "stream.sqlite")) as connection:
        connection.execute("DELETE FROM identity")
        connection.commit()
    done = lap("seal", "--ledger", ledger.root)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("lap: ")
    assert "has lost its identity; restore this file from a backup" in done.err
    assert done.err.count("\n") == 1
    assert lap("verify", "--ledger", ledger.root).code == 1
