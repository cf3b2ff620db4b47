"""Objects in an S3 bucket, through pyarrow. Credentials come from the usual AWS environment or files, never from here.

The library is loaded, and the bucket looked up, when the first object is accessed.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from lapledger.ledger.disk import make_folder, refuse_below_reserve, temporary
from lapledger.ledger.errors import UserError
from lapledger.ledger.store.objects.objects import KEYS, stored_errors

UPLOADS = 8
"""Objects on their way at once."""

FRESH_NS = 24 * 3600 * 10**9
"""An object older than this is sent again when it is put again, so that a collector sees that it is in use."""

OPTIONS = ("endpoint_override", "region", "scheme")
"""Options in the query of a url, under Arrow's names."""


@dataclass(frozen=True, slots=True)
class S3Address:
    """A bucket, a prefix in it (empty for none), and how its server is reached."""

    bucket: str
    prefix: str
    options: dict[str, str]

    @classmethod
    def parse(cls, url: str) -> "S3Address":
        """The address in `s3://bucket/prefix?region=...`; UserError when it is malformed or carries credentials."""
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError:
            raise UserError("setting 'store' is no address; write s3://BUCKET/PREFIX") from None
        unknown = sorted(options.keys() - set(OPTIONS))
        if "@" in parts.netloc or any("key" in name or "token" in name for name in unknown):
            raise UserError(f"setting 'store' must carry no credentials; set {KEYS}")
        if unknown:
            raise UserError(f"setting 'store' knows no option {unknown[0][:40]!r}; choose from {', '.join(OPTIONS)}")
        if options.get("scheme", "https") not in ("http", "https"):
            raise UserError("setting 'store': the scheme is http or https")
        names = [name for name in parts.path.split("/") if name]
        if parts.scheme != "s3" or not parts.netloc or parts.fragment or {".", ".."} & set(names):
            raise UserError("setting 'store' is no address; write s3://BUCKET/PREFIX")
        return cls(parts.netloc, "/".join(names), options)


class S3Files:
    """Objects below a prefix of a bucket; see `ledger.store.objects.objects.Files`. Several processes may write.

    An object is complete on the server when `put` returns. Files to be put are filled in `scratch`, by default the
    system's temporary folder, of whose disk `reserve_bytes` stay free.
    """

    def __init__(
        self,
        url: str,
        below: str = "",
        *,
        scratch: Path | None = None,
        reserve_bytes: int = 0,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._address = S3Address.parse(url)
        self._path = "/".join(part for part in (self._address.bucket, self._address.prefix, below) if part)
        self._scratch = scratch or Path(gettempdir())
        self._reserve_bytes = reserve_bytes
        self._clock_ns = clock_ns
        self.where = f"s3://{self._path}"

    @cached_property
    def filesystem(self) -> Any:
        """Arrow's view of the prefix; UserError when there is no such bucket or it may not be seen."""
        from pyarrow import fs

        with stored_errors(self.where):
            # one request writes a small object; a server may be slow to answer when it is busy
            options = {"allow_delayed_open": True, "connect_timeout": 10, "request_timeout": 60}
            server = fs.S3FileSystem(**options, **self._address.options)
            if server.get_file_info(self._address.bucket).type == fs.FileType.NotFound:
                raise UserError(
                    f"{self.where}: there is no such bucket, or these credentials do not see it; make it, or correct"
                    " the setting `store`"
                )
        return fs.SubTreeFileSystem(self._path, server)

    def put(self, items: Iterable[tuple[str, bytes | Path]]) -> None:
        """Stores each content under its name, several at once; all are durable when this returns."""
        _ = self.filesystem  # a missing bucket is reported once, before anything is read
        with ThreadPoolExecutor(UPLOADS, "lap-upload") as pool:
            under_way: deque[Future[None]] = deque()
            for name, content in items:
                under_way.append(pool.submit(self._upload, name, content))
                if len(under_way) == 2 * UPLOADS:
                    under_way.popleft().result()
            for upload in under_way:
                upload.result()

    def _upload(self, name: str, content: bytes | Path) -> None:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        root = self.filesystem
        with stored_errors(f"{self.where}/{name}"):
            info = root.get_file_info(name)
        if info.size == size and info.mtime_ns > self._clock_ns() - FRESH_NS:
            return
        data = content if isinstance(content, bytes) else pa.memory_map(str(content)).read_buffer()
        # Closing completes an upload, whatever happened before: so the one write before it holds all the bytes.
        with stored_errors(f"{self.where}/{name}"), root.open_output_stream(name, compression=None) as stream:
            stream.write(data)

    def settle(self, names: Iterable[str]) -> None:
        """Nothing to do: every put was acknowledged."""

    @contextmanager
    def part(self) -> Iterator[Path]:
        """A fresh empty file in the scratch folder."""
        make_folder(self._scratch)
        refuse_below_reserve(self._scratch, self._reserve_bytes)
        with temporary(self._scratch) as path:
            yield path

    def local(self, name: str) -> Path | None:
        """None: objects are on the server."""
        return None
