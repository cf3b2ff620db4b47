"""A real S3 server for tests: versitygw, built once with Go into the user's cache; where Go is missing moto stands in.

Also a relay before a server, which breaks off in the middle of an upload.
"""

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow import fs

GATEWAY = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lapledger-tests"
SECRET = "of-no-use-elsewhere"  # noqa: S105  (of a server that lives as long as a test)
KEYS = {"AWS_ACCESS_KEY_ID": "lap-tests", "AWS_SECRET_ACCESS_KEY": SECRET}
BUCKET = "lap-tests"
READY_SECONDS = 60


@dataclass(frozen=True)
class S3Server:
    """A server on this machine with the bucket `BUCKET`; `kind` is `versitygw` or `moto`."""

    kind: str
    port: int

    def url(self, prefix: str, *, bucket: str = BUCKET, port: int | None = None) -> str:
        """The address of a prefix, as the setting `store` takes it."""
        return f"s3://{bucket}/{prefix}?endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which clients may use it, and find no other credentials."""
        return KEYS | {
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }


@contextlib.contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """A fresh server that keeps its files in `folder`; it has ended when this returns."""
    gateway, port = _gateway(), _free_port()
    (folder / "objects").mkdir(parents=True)
    keys = {"ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": SECRET}
    if gateway:
        command = [str(gateway), "--quiet", "--port", f"127.0.0.1:{port}", "posix", str(folder / "objects")]
    else:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **keys})
    try:
        _wait_for_bucket(process, port, folder / "log")
        yield S3Server("versitygw" if gateway else "moto", port)
    finally:
        process.terminate()
        process.wait(10)


def _wait_for_bucket(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    options = {"endpoint_override": f"127.0.0.1:{port}", "scheme": "http", "region": "us-east-1"}
    patience = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    keys = {"access_key": KEYS["AWS_ACCESS_KEY_ID"], "secret_key": SECRET}
    client = fs.S3FileSystem(**options, **keys, allow_bucket_creation=True, retry_strategy=patience)
    while True:
        try:
            client.create_dir(BUCKET)
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the S3 server does not start: {error}; {log.read_text()[-600:]}") from error
            time.sleep(0.02)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _gateway() -> Path | None:
    """The gateway's program, built when it is not in the cache yet; None where it cannot be built."""
    program = CACHE / GATEWAY.rsplit("/", 1)[-1]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        go = shutil.which("go")
        if not program.exists() and go:
            with tempfile.TemporaryDirectory(dir=CACHE) as built:
                command = [go, "install", GATEWAY]
                environment = {**os.environ, "GOBIN": built}
                done = subprocess.run(command, cwd=built, env=environment, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"versitygw cannot be built, moto stands in: {done.stderr[-300:]}")
                    return None
                (Path(built) / "versitygw").rename(program)
    return program if program.exists() else None


@dataclass
class Relay:
    """Forwards connections to a port until `budget` bytes went there; then `spent` is set: it stands still or breaks.

    Standing still keeps all connections open and moves nothing; breaking closes them and takes no new ones.
    """

    target: int
    budget: int
    stands_still: bool
    spent: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)
    _sockets: list[socket.socket] = field(default_factory=list)

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        """The port it listens on."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._sockets.append(listener)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            try:
                yield int(listener.getsockname()[1])
            finally:
                self._ended.set()
                self._close()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self._sockets += [near, far]
                threading.Thread(target=self._pump, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if counted:
                    self.budget -= len(data)
                if self.budget < 0:
                    self._spend()
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def _spend(self) -> None:
        self.spent.set()
        if self.stands_still:
            self._ended.wait()
        else:
            self._close()

    def _close(self) -> None:
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
