"""Who judges for a command: numpy here, torch on a device, or a Ray cluster's processes. The verdicts are the same.

Neither torch nor ray is imported unless it is asked for. What is judged, and what of it is shown, is said elsewhere.
"""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib.util import find_spec
from typing import Any

import click

from lapledger.ledger.errors import UserError
from lapledger.render.output import say
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Verdicts, judge
from lapledger.replay.measurements import ProblemMeasurements

DEVICES = ("cpu", "cuda")
ENGINES = ("local", "ray")
CONNECT_SECONDS = 5.0
"""How long a cluster may take to answer at its address."""


@dataclass(frozen=True, slots=True)
class How:
    """Who judges, as a person asks for it. UserError where the flags contradict each other."""

    device: str | None = None  # None: numpy
    engine: str = "local"
    workers: int | None = None  # processes at most, None for one a processor
    cluster: str | None = None  # address of a Ray cluster, None for one that is started for the command

    def __post_init__(self) -> None:
        """Refuse what cannot be done together."""
        if self.engine == "ray" and self.device:
            raise UserError(
                "--device and --engine ray exclude each other: processes judge with numpy; give one of them"
            )
        for flag, value in (("--workers", self.workers), ("--cluster", self.cluster)):
            if value is not None and self.engine != "ray":
                raise UserError(f"{flag} is about the processes of a cluster; add --engine ray, or leave it out")
        if self.cluster and self.workers:
            raise UserError("--workers is for a cluster that is started here; leave it out beside --cluster")

    def refuse_device(self, reason: str) -> None:
        """Nothing; UserError with the reason where a device is asked for by a command that does not use one."""
        if self.device:
            raise UserError(f"--device {self.device}: {reason}; leave it out, or spread the problems with --engine ray")


NUMPY = How()
"""Numpy in this process: what every command does that is not asked for more."""


def engine_options(function: Callable[..., Any], *, device: bool = True) -> Callable[..., Any]:
    """Adds --device, --engine, --workers and --cluster, which reach the command together as `how`.

    Help is silent of --device where the command refuses it.
    """

    @wraps(function)
    def asked(*args: Any, **rest: Any) -> Any:
        words = {name: rest.pop(name) for name in How.__slots__}
        return function(*args, how=How(**words), **rest)

    for option in reversed((_device_option(hidden=not device), *_OPTIONS)):
        asked = option(asked)
    return asked


def _device_option(*, hidden: bool) -> Callable[..., Any]:
    return click.option(
        "--device",
        default=None,
        type=click.Choice(DEVICES),
        hidden=hidden,
        help="Rank with torch, here or on a GPU; the verdicts are the same.  [default: numpy]",
    )


_OPTIONS = (
    click.option(
        "--engine",
        default="local",
        type=click.Choice(ENGINES),
        help="Judge here or by the processes of a Ray cluster; the verdicts are the same.  [default: local]",
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
        help="With --engine ray: a cluster that runs.  [default: one on this machine, for this command]",
    ),
)


def judged(
    problems: Sequence[ProblemMeasurements],
    criterion: Criterion,
    how: How = NUMPY,
    *,
    told: Callable[[int], object] = lambda count: None,
) -> list[Verdicts]:
    """The verdicts on every problem, in their order, the same whoever judges; `told` hears of each problem.

    UserError where a package that is asked for is not installed; ReplayError where there is no GPU or no cluster.
    """
    if how.device:
        needs("torch", f"--device {how.device}", "models")
        from lapledger.replay.devices.batches import judge_on

        return judge_on(problems, criterion, how.device)
    if how.engine == "ray":
        needs("ray", "--engine ray", "ray")
        from lapledger.replay.devices.spread import judge_by

        with connected(how):
            return judge_by("ray", problems, criterion=criterion, workers=how.workers)
    found = []
    for m in problems:
        found.append(judge(m, criterion, hold=False))
        told(1)
    return found


def needs(module: str, flag: str, extra: str) -> None:
    """Nothing; UserError where a flag asks for a package that is not installed, with the extra that brings it."""
    if find_spec(module) is None:
        raise UserError(f"{flag} needs the package {module}: pip install 'lapledger[{extra}]'")


@contextmanager
def connected(how: How) -> Iterator[None]:
    """The cluster that is asked for: within a command it is connected once, and left when the command ends."""
    context = click.get_current_context(silent=True)
    if context is None:
        with _cluster(how):
            yield
        return
    if __name__ not in context.meta:
        context.meta[__name__] = how
        context.with_resource(_cluster(how))
    yield


@contextmanager
def _cluster(how: How) -> Iterator[None]:
    from lapledger.replay.devices.spread import cluster

    with _environment({"RAY_USAGE_STATS_ENABLED": "0"}):
        if how.cluster:
            _reach(how.cluster)
            with cluster(address=how.cluster):
                yield
            return
        say("starting the processes of a Ray cluster on this machine")
        folder = tempfile.mkdtemp(prefix="lap-ray-")
        try:
            with _environment(private_settings()), cluster(workers=how.workers, folder=folder):
                yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _reach(address: str) -> None:
    """UserError where nothing listens at HOST:PORT; ray itself would try again for many minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        words = getattr(error, "strerror", None) or "no answer" if isinstance(error, OSError) else "no such address"
        raise UserError(
            f"--cluster {address}: {words}; give HOST:PORT of its head, as `ray start --head` printed it"
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
