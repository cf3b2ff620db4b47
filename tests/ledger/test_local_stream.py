"""What is particular to the local stream: where it may lie, and what a full disk does."""

from pathlib import Path

import pytest

from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.sqlite_file import filesystem_of

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local xfs rw 0 0
//files/x /mnt/my\\040share cifs rw 0 0
malformed
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x", "ext4"),
        ("/home/ann/ledger", "nfs4"),
        ("/home/local/ledger", "xfs"),
        ("/homes/ledger", "ext4"),
        ("/mnt/my share/ledger", "cifs"),
    ],
)
def test_the_deepest_mount_decides_the_filesystem(path: str, kind: str) -> None:
    """As the kernel resolves paths; spaces in mount points are octal escapes in /proc/mounts."""
    assert filesystem_of(Path(path), MOUNTS) == kind


def test_a_network_filesystem_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says why and what to do, and no file is made."""
    monkeypatch.setattr("lapledger.ledger.streams.sqlite_file.filesystem_of", lambda *_: "nfs4")
    with pytest.raises(UserError, match=r"network filesystem \(nfs4\).*choose a local folder"):
        LocalStream.create(tmp_path / "stream.sqlite", "word")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_stream_is_the_users_mistake(tmp_path: Path) -> None:
    """Opening never makes a file."""
    with pytest.raises(UserError, match="lap ledger init"):
        LocalStream(tmp_path / "stream.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_stores_nothing_of_an_append(tmp_path: Path) -> None:
    """SQLite's own page limit stands for the disk: a Fault of one line, and the earlier records stay."""
    stream = LocalStream.create(tmp_path / "stream.sqlite", "word")
    stream.append("facts", 0, [Record({}, b"kept")])
    stream._connection.execute("PRAGMA max_page_count = 12")
    with pytest.raises(Fault, match="full") as caught:
        stream.append("facts", 0, [Record({}, bytes(30_000))] * 50)
    assert "\n" not in str(caught.value)
    assert [stored.record.payload for stored in stream.read("facts", 0, 0, 100)] == [b"kept"]
    stream.append("facts", 0, [Record({}, b"small")])


def test_a_file_that_is_no_database_is_a_fault(tmp_path: Path) -> None:
    """A foreign error becomes one line."""
    path = tmp_path / "stream.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(Fault, match="not a database"):
        LocalStream(path)
