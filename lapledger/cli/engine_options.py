"""The flags that choose an engine, and the Ray cluster of a command. The verdicts are the same with every engine.

Neither torch nor ray is imported unless it is asked for. Which engine does what is in `replay.engines`.
"""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial, wraps
from importlib.util import find_spec
from typing import Any

import click

from lapledger.ledger.errors import UserError
from lapledger.render.output import print_message
from lapledger.replay.engines import DEVICES, ENGINES, Engine

CONNECT_SECONDS = 5.0
"""How long a cluster may take to answer at its address."""


def engine_options(function: Callable[..., Any], *, device: bool = True) -> Callable[..., Any]:
    """Adds --engine, --device, --workers and --cluster, which reach the command together as `engine`.

    A command without `device` refuses torch, and its help does not show --device.
    """

    @wraps(function)
    def with_engine(*args: Any, **flags: Any) -> Any:
        flag = f"--device {flags['device']}" if flags["device"] else "--engine torch"
        chosen = engine_of(**{name: flags.pop(name) for name in ("engine", "device", "workers", "cluster")})
        if chosen.name == "torch" and not device:
            raise UserError(
                f"{flag}: this command computes in machine code or with numpy; leave it out, or spread the problems"
                " with --engine ray"
            )
        return function(*args, engine=chosen, **flags)

    for option in reversed((_device_option(hidden=not device), *_OPTIONS)):
        with_engine = option(with_engine)
    return with_engine


def engine_of(engine: str | None, device: str | None, workers: int | None, cluster: str | None) -> Engine:
    """The engine that the flags state; UserError where they contradict each other or a package is not installed."""
    if device and engine not in (None, "torch"):
        raise UserError(f"--device and --engine {engine} exclude each other: only torch has a device; give one")
    for flag, value in (("--workers", workers), ("--cluster", cluster)):
        if value is not None and engine != "ray":
            raise UserError(f"{flag} is about the processes of a cluster; add --engine ray, or leave it out")
    if cluster and workers:
        raise UserError("--workers is for a cluster that is started here; leave it out beside --cluster")
    if device or engine == "torch":
        _require("torch", f"--device {device}" if device else "--engine torch", "models")
        return Engine("torch", device=device or "cpu")
    if engine == "ray":
        _require("ray", "--engine ray", "ray")
        return Engine("ray", workers=workers, session=partial(connected, address=cluster, workers=workers))
    return Engine(engine or "auto")


def _device_option(*, hidden: bool) -> Callable[..., Any]:
    return click.option(
        "--device",
        default=None,
        type=click.Choice(DEVICES),
        hidden=hidden,
        help="Device of --engine torch, which this flag implies; the verdicts are the same.  [default: cpu]",
    )


_OPTIONS = (
    click.option(
        "--engine",
        default=None,
        type=click.Choice(ENGINES),
        help="What computes the verdicts, which are the same: numpy, machine code (numba), torch, or the processes of"
        " a Ray cluster.  [default: auto: numba where there are many runs, else numpy]",
    ),
    click.option(
        "--workers",
        default=None,
        type=click.IntRange(1),
        metavar="N",
        help="With --engine ray: processes to start.  [default: one a processor]",
    ),
    click.option(
        "--cluster",
        default=None,
        metavar="HOST:PORT",
        help="With --engine ray: a running cluster.  [default: one on this machine, for this command]",
    ),
)


def _require(module: str, flag: str, extra: str) -> None:
    """Raise UserError if a flag asks for a package that is not installed, and name the extra that brings it."""
    if find_spec(module) is None:
        raise UserError(f"{flag} needs the package {module}: pip install 'lapledger[{extra}]'")


@contextmanager
def connected(*, address: str | None = None, workers: int | None = None) -> Iterator[None]:
    """A Ray cluster: the one at an address, else one that is started here.

    Within a command it is connected once, and left when the command ends.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        with _cluster(address, workers):
            yield
        return
    if __name__ not in context.meta:
        context.meta[__name__] = True
        context.with_resource(_cluster(address, workers))
    yield


@contextmanager
def _cluster(address: str | None, workers: int | None) -> Iterator[None]:
    from lapledger.replay.devices.spread import cluster

    with _environment({"RAY_USAGE_STATS_ENABLED": "0"}):
        if address:
            _reach(address)
            with cluster(address=address):
                yield
            return
        print_message("starting the processes of a Ray cluster on this machine")
        folder = tempfile.mkdtemp(prefix="lap-ray-")
        try:
            with _environment(private_settings()), cluster(workers=workers, folder=folder):
                yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _reach(address: str) -> None:
    """Raise UserError if nothing listens at HOST:PORT; ray itself would try again for many minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "no answer" if isinstance(error, OSError) else "no such address"
        raise UserError(
            f"--cluster {address}: {reason}; give HOST:PORT of its head, as `ray start --head` printed it"
        ) from None


@cache
def private_settings() -> dict[str, str]:
    """What keeps a cluster of this process to itself, to be in the environment before ray is imported.

    It listens on the loopback alone, as ray does where it knows of no other machine, and answers to a token that only
    this process has: without one ray would write its own into the home folder.
    """
    token = secrets.token_hex(32)
    return {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables that are set for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
