"""Claims of user ranges: no two workers of one machine give programs the same users."""

import subprocess
import sys
from pathlib import Path

CLAIM = """
import sys
from pathlib import Path
from lapledger.ledger.errors import UserError
from lapledger.producers.sandbox import users
users._CLAIMS = Path(sys.argv[1])
claim = users.claim_users if sys.argv[2] == "once" else users.claim_users.__wrapped__
try:
    print(*(claim() for _ in range(int(sys.argv[3]))), flush=True)
except UserError as error:
    print(error, flush=True)
input()
"""


def claims(folder: Path, way: str, times: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", CLAIM, str(folder), way, str(times)]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def logged(worker: "subprocess.Popen[str]") -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def test_workers_in_parallel_have_users_of_their_own(tmp_path: Path) -> None:
    """Ranges of 256: one a process, the lowest that is free, and free again when its process has ended."""
    folder = tmp_path / "claims"
    first = claims(folder, "once", 2)
    assert logged(first) == "60000 60000"
    second = claims(folder, "once", 1)
    assert logged(second) == "60256"
    assert folder.stat().st_mode & 0o777 == 0o700
    first.communicate("\n")
    third = claims(folder, "once", 1)
    assert logged(third) == "60000"
    for worker in (second, third):
        worker.communicate("\n")


def test_the_ranges_leave_nobody_out_and_end(tmp_path: Path) -> None:
    """64 ranges from 60000 on, without the one of user 65534; without a folder for locks it is always the first."""
    ranges = [first for first in range(60_000, 60_000 + 64 * 256, 256) if not first <= 65_534 < first + 256]
    for folder, times, expected in (
        (tmp_path / "all", 63, " ".join(map(str, ranges))),
        (tmp_path / "all", 64, "all 63 ranges of users are taken by other runs: wait until one ends"),
        (tmp_path / "no" / "folder", 2, "60000 60000"),
    ):
        worker = claims(folder, "again", times)
        assert logged(worker) == expected
        worker.communicate("\n")
