"""Stored objects: one contract for a local folder and an S3 bucket, then what each alone has to keep."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapledger.ledger.disk import LocalFiles, refuse_below_reserve
from lapledger.ledger.errors import DiskFull, Fault, LapError, Unavailable, UserError
from lapledger.ledger.store.objects.objects import Files, digest_of, listing, read_object, remove, size_of, stored_fault
from lapledger.ledger.store.objects.s3 import FRESH_NS, S3Address, S3Files
from tests.support.s3_servers import SECRET, Relay, S3Server


@pytest.fixture(params=["local", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """An empty store of either kind."""
    if request.param == "local":
        return LocalFiles(tmp_path / "store")
    server: S3Server = request.getfixturevalue("s3")
    return S3Files(server.url(tmp_path.name), "store", scratch=tmp_path / "scratch")


def test_a_real_gateway_answers(s3: S3Server) -> None:
    """What follows is about versitygw; only where it cannot be built, for want of Go, does moto stand in."""
    assert s3.kind == "versitygw" or shutil.which("go") is None


def test_what_was_put_comes_back(files: Files) -> None:
    """Bytes, size, digest and listing by name; an empty object too, and one of several megabytes."""
    kept = {"a/1": b"text", "a/2": b"", "b/1": os.urandom(3 << 20)}
    files.put(reversed(kept.items()))
    files.settle(kept)
    assert {name: read_object(files, name, "object") for name in kept} == kept
    assert {name: size_of(files, name) for name in kept} == {name: len(data) for name, data in kept.items()}
    assert digest_of(files, "b/1", "object") == hashlib.sha256(kept["b/1"]).hexdigest()
    assert [(stored.name, stored.bytes) for stored in listing(files)] == [("a/1", 4), ("a/2", 0), ("b/1", 3 << 20)]
    assert all(stored.modified_ms > 1_600_000_000_000 for stored in listing(files))


def test_many_are_put_at_once(files: Files) -> None:
    """More than go to a server side by side."""
    kept = {f"{number % 7}/{number}": str(number).encode() for number in range(100)}
    files.put(kept.items())
    assert {stored.name: read_object(files, stored.name, "object") for stored in listing(files)} == kept


def test_a_name_is_written_once(files: Files) -> None:
    """Its content follows from it, so only an object of another size was damaged and is replaced."""
    files.put([("a/1", b"first")])
    files.put([("a/1", b"other")])
    assert read_object(files, "a/1", "object") == b"first"
    files.put([("a/1", b"longer")])
    assert read_object(files, "a/1", "object") == b"longer"


def test_a_filled_part_is_put(files: Files) -> None:
    """It is an object then, and nothing is left of the part; one that nobody put leaves nothing at all."""
    with files.part() as part, files.part() as unused:
        part.write_bytes(b"filled")
        unused.write_bytes(b"half")
        files.put([("a/1", part)])
    assert not part.exists()
    assert not unused.exists()
    assert [(stored.name, stored.bytes) for stored in listing(files)] == [("a/1", 6)]
    assert read_object(files, "a/1", "object") == b"filled"


def test_what_is_missing_is_reported(files: Files) -> None:
    """In one line with its place; size and removal need no object."""
    files.put([("a/1", b"text")])
    with pytest.raises(Fault, match=f"^thing {files.where}/a/2 is missing; run `lap verify`, restore it"):
        read_object(files, "a/2", "thing")
    assert size_of(files, "a/2") is None
    remove(files, "a/2")
    remove(files, "a/1")
    assert size_of(files, "a/1") is None
    assert listing(files) == []


def test_an_empty_store_has_no_objects(files: Files) -> None:
    """Before anything made its folder or prefix."""
    assert listing(files) == []
    assert size_of(files, "a/1") is None


def test_a_put_that_fails_leaves_complete_objects(files: Files) -> None:
    """Whatever was handed over before its source failed is whole; the rest is not there."""

    def items() -> Iterator[tuple[str, bytes]]:
        yield "a/1", b"one"
        raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        files.put(items())
    assert [(stored.name, stored.bytes) for stored in listing(files)] == [("a/1", 3)]


def test_a_local_file_of_an_object(files: Files) -> None:
    """Known where there is one, for programs that read files."""
    files.put([("a/1", b"text")])
    path = files.local("a/1")
    assert (path is None) == files.where.startswith("s3://")
    assert path is None or (path.read_bytes(), path.stat().st_mode & 0o777) == (b"text", 0o444)


def test_a_reserve_of_the_disk_stays_free(tmp_path: Path) -> None:
    """Beyond it nothing is written and no segment begun; the message names the setting."""
    files = LocalFiles(tmp_path / "store", reserve_bytes=1 << 60)
    message = r"MiB stay in reserve; free some space or lower the setting `reserve_mb`"
    with pytest.raises(DiskFull, match=message):
        files.put([("a/1", b"text")])
    with pytest.raises(DiskFull, match=message):
        files.part().__enter__()
    assert listing(files) == []
    refuse_below_reserve(tmp_path, reserve_bytes=1 << 10, wanted_bytes=1 << 10)
    with pytest.raises(DiskFull, match=message):
        refuse_below_reserve(tmp_path, reserve_bytes=1 << 10, wanted_bytes=1 << 60)


def test_the_scratch_of_an_object_store_keeps_its_reserve(tmp_path: Path) -> None:
    """Segments are filled on the local disk before they travel."""
    files = S3Files("s3://bucket/prefix", scratch=tmp_path, reserve_bytes=1 << 60)
    with pytest.raises(DiskFull, match="reserve_mb"):
        files.part().__enter__()


def test_an_old_object_that_is_put_again_is_young_again(s3: S3Server, tmp_path: Path) -> None:
    """Else a collector might take what was just put: locally by its time, on S3 by sending it once more."""
    local = LocalFiles(tmp_path / "store")
    local.put([("a/1", b"text")])
    os.utime(tmp_path / "store" / "a" / "1", (1, 1))
    local.put([("a/1", b"text")])
    assert listing(local)[0].modified_ms > 1_600_000_000_000
    S3Files(s3.url(tmp_path.name)).put([("a/1", b"1st!")])
    later = S3Files(s3.url(tmp_path.name), clock_ns=lambda: time.time_ns() + 2 * FRESH_NS)
    later.put([("a/1", b"2nd!")])  # other bytes, only to see that they were sent
    assert read_object(later, "a/1", "object") == b"2nd!"


def test_stores_below_one_prefix_are_apart(s3: S3Server, tmp_path: Path) -> None:
    """Segments and blobs of one ledger, or two ledgers in one bucket."""
    item, two = (S3Files(s3.url(tmp_path.name), below) for below in ("one", "two"))
    item.put([("a/1", b"text")])
    assert [stored.name for stored in listing(item)] == ["a/1"]
    assert listing(two) == []
    assert [stored.name for stored in listing(S3Files(s3.url(tmp_path.name)))] == ["one/a/1"]


UPLOAD = """
import sys
from lapledger.ledger.store.objects.s3 import S3Files
S3Files(sys.argv[1]).put([("a/1", bytes(40 << 20))])
"""


def test_an_upload_whose_process_is_killed_leaves_no_object(s3: S3Server, tmp_path: Path) -> None:
    """Half of the parts have arrived when it dies. Putting it again stores it whole."""
    direct = S3Files(s3.url(tmp_path.name))
    relay = Relay(s3.port, budget=20 << 20, stands_still=True)
    with relay.serving() as port:
        process = subprocess.Popen([sys.executable, "-c", UPLOAD, s3.url(tmp_path.name, port=port)])
        assert relay.spent.wait(60)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    assert (size_of(direct, "a/1"), listing(direct)) == (None, [])
    direct.put([("a/1", bytes(40 << 20))])
    assert read_object(direct, "a/1", "object") == bytes(40 << 20)


def test_an_upload_whose_connection_breaks_is_a_fault_and_leaves_no_object(s3: S3Server, tmp_path: Path) -> None:
    """The server is gone after half of the parts, for good."""
    direct = S3Files(s3.url(tmp_path.name))
    relay = Relay(s3.port, budget=20 << 20, stands_still=False)
    with relay.serving() as port:
        broken = S3Files(s3.url(tmp_path.name, port=port))
        with pytest.raises(Unavailable, match=r"the object store failed \(NETWORK_CONNECTION\); check its endpoint"):
            broken.put([("a/1", bytes(40 << 20))])
    assert relay.spent.is_set()
    assert (size_of(direct, "a/1"), listing(direct)) == (None, [])


def test_mistakes_about_a_bucket_are_the_users(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such bucket, a wrong secret, an unknown key: one line each, without the secret."""
    with pytest.raises(UserError, match=r"s3://none/p: there is no such bucket.*correct the setting `store`"):
        S3Files(s3.url("p", bucket="none")).put([("a/1", b"text")])
    if s3.kind == "moto":
        return  # it takes every key
    for name, value in {"AWS_SECRET_ACCESS_KEY": "wrong-secret", "AWS_ACCESS_KEY_ID": "unknown-key"}.items():
        monkeypatch.setenv(name, value)
        with pytest.raises(UserError, match="credentials") as caught:
            S3Files(s3.url("p")).put([("a/1", b"text")])
        assert not {"wrong-secret", "unknown-key", SECRET} & set(str(caught.value).split())
        assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_a_fault(s3: S3Server) -> None:
    """The port of a relay that has ended."""
    with Relay(s3.port, budget=0, stands_still=False).serving() as port:
        pass
    with pytest.raises(Unavailable, match=r"s3://lap-tests/p: the object store failed \(NETWORK_CONNECTION\)"):
        listing(S3Files(s3.url("p", port=port)))


@pytest.mark.parametrize(
    ("args", "kind", "seen"),
    [
        ("AWS Error NO_SUCH_BUCKET during PutObject operation: gone", UserError, "no such bucket"),
        ("AWS Error ACCESS_DENIED during HeadBucket operation: none", UserError, r"credentials \(ACCESS_DENIED\)"),
        ("AWS Error UNKNOWN (HTTP status 403) during HeadObject operation", UserError, r"credentials \(403\)"),
        (
            "AWS Error UNKNOWN (HTTP status 400) during X operation: Unable to parse ExceptionName: ExpiredToken",
            UserError,
            r"credentials \(ExpiredToken\)",
        ),
        ("AWS Error UNKNOWN (HTTP status 301) during HeadBucket operation", UserError, r"\?region="),
        ("AWS Error UNKNOWN (HTTP status 507) during PutObject operation", DiskFull, "object store is full"),
        ("AWS Error NO_SUCH_KEY during GetObject operation: gone", Fault, "object x is missing; run `lap verify`"),
        ("AWS Error SLOW_DOWN during PutObject operation: token=abc", Unavailable, r"failed \(SLOW_DOWN\)"),
        ("AWS Error UNKNOWN (HTTP status 503) during PutObject operation", Unavailable, r"failed \(503\)"),
        ("AWS Error VALIDATION during PutObject operation: token=abc", Fault, r"failed \(VALIDATION\)"),
        ("Couldn't deserialize thrift", Fault, "cannot be read: Couldn't deserialize thrift; run `lap verify`"),
    ],
)
def test_answers_of_a_server_become_our_errors(args: str, kind: type[LapError], seen: str) -> None:
    """Only the code of an answer is repeated: its text may hold anything."""
    fault = stored_fault(OSError(f"When asking 'x' in 'y': {args}" if "AWS" in args else args), "object x")
    assert type(fault) is kind
    with pytest.raises(kind, match=seen):
        raise fault
    assert "abc" not in str(fault)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("s3://key:secret@bucket/prefix", "must carry no credentials"),
        ("s3://bucket/prefix?access_key=secret", "must carry no credentials"),
        ("s3://bucket/prefix?color=secret", "knows no option 'color'"),
        ("s3://bucket/prefix?region", "write s3://BUCKET/PREFIX"),
        ("s3:///prefix", "write s3://BUCKET/PREFIX"),
        ("gs://bucket/prefix", "write s3://BUCKET/PREFIX"),
        ("s3://bucket/../other", "write s3://BUCKET/PREFIX"),
        ("s3://bucket/prefix?scheme=ftp", "scheme is http or https"),
        ("/a/folder", "write s3://BUCKET/PREFIX"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, seen: str) -> None:
    """Before anything is asked, and without repeating what may be a secret."""
    with pytest.raises(UserError, match=seen) as caught:
        S3Files(url)
    assert "secret" not in str(caught.value)


def test_an_address_gives_bucket_prefix_and_options() -> None:
    """A prefix may be empty or of several words."""
    address = S3Address.parse("s3://bucket/a//b/?region=eu-west-1&scheme=http")
    assert (address.bucket, address.prefix) == ("bucket", "a/b")
    assert address.options == {"region": "eu-west-1", "scheme": "http"}
    assert S3Files("s3://bucket", "blobs").where == "s3://bucket/blobs"
    assert S3Files("s3://bucket/a?region=x").where == "s3://bucket/a"
