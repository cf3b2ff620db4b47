"""One question put to many problems, here or by the processes of a Ray cluster: the same results, in the same order.

The only module that imports ray, and imported only for the engine `ray`. Each problem is answered by itself,
with random numbers keyed by its id, so nothing depends on which process answers, or on their number.
"""

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.questions import ProblemQuestion, one_by_one
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import DetailSource, Verdicts, judge
from lapledger.replay.measurements import ProblemMeasurements

ENGINES = ("local", "ray")
PACKAGE = "lapledger"
STORE_BYTES = 512 * 2**20
"""Shared memory of a cluster that is started here; what does not fit there goes to its folder."""
STARTS = 4
"""How often a cluster on this machine is started at most."""
SHARES = 4
"""Shares of the problems that each process gets, one after the other: problems are of different sizes."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """The verdicts of a criterion on one problem."""

    criterion: Criterion

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> dict[str, Any]:
        """The fields of the verdicts, without the problem itself, which the caller has; nothing is drawn."""
        verdicts = judge(m, self.criterion, hold=False)
        return {field.name: getattr(verdicts, field.name) for field in fields(verdicts) if field.name != "details_from"}


def judge_by(
    engine: str, problems: Sequence[ProblemMeasurements], *, criterion: Criterion, workers: int | None = None
) -> list[Verdicts]:
    """The verdicts on every problem, in their order, judged by an engine; details are computed here, on first use.

    ReplayError as `spread` raises it.
    """
    answers = spread(problems, JudgeQuestion(criterion), engine=engine, workers=workers)
    return [
        Verdicts(**decided, details_from=DetailSource(m, criterion, None))
        for m, decided in zip(problems, answers, strict=True)
    ]


def spread(
    problems: Sequence[ProblemMeasurements],
    judge_one: ProblemQuestion[Answer],
    *,
    engine: str = "local",
    workers: int | None = None,
    seed: int = 0,
) -> list[Answer]:
    """What is found on each problem, in the order of the problems, so that any sum over them is taken in that order.

    The engine `local` runs here, one problem after the other. `ray` runs on the cluster that is connected, or one that
    is started for the call, `workers` problems at a time (all its processors without). ReplayError for an unknown
    engine, for what a problem refuses (the first that does so), and where the cluster fails.
    """
    if engine not in ENGINES:
        raise ReplayError(f"engine {engine!r} is not known; use one of {', '.join(ENGINES)}")
    if engine == "local":
        return list(one_by_one(problems, judge_one, seed))
    if _ray().is_initialized():
        return _by_ray(problems, judge_one, workers, seed)
    with cluster(workers=workers):
        return _by_ray(problems, judge_one, workers, seed)


@contextmanager
def cluster(*, address: str | None = None, workers: int | None = None, folder: str | None = None) -> Iterator[None]:
    """A connected cluster: the one at an address, or one of `workers` processes that is started here and stopped after.

    `folder` holds its logs and sockets and should have a short name. ReplayError where ray is not installed, or where
    there is no cluster to be had.
    """
    here = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": STORE_BYTES, "_temp_dir": folder}
    if address:
        _connect(address, 1, {})
    else:
        _connect("local", STARTS, here)
    try:
        yield
    finally:
        _ray().shutdown()


def _connect(address: str, tries: int, options: dict[str, Any]) -> None:
    """Connects to a cluster, which is started where the address is `local`; ReplayError when the last try fails."""
    for left in reversed(range(tries)):
        try:
            _ray().init(address=address, log_to_driver=False, logging_level="error", **options)
        except ReplayError:
            raise
        except Exception as error:  # noqa: BLE001  (ray raises errors of every kind here, bare ones too)
            if left and "timed out" in str(error):
                continue  # a busy machine may need longer than the half minute that ray gives it
            message = f"the Ray cluster {address!r} cannot be used: {_line(error)}; see `ray status`"
            raise ReplayError(message) from None
        return


def _by_ray(
    problems: Sequence[ProblemMeasurements], judge_one: ProblemQuestion[Answer], workers: int | None, seed: int
) -> list[Answer]:
    """The same from the cluster, a few shares at a time, fetched in their order."""
    ray = _ray()
    count = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
    step = max(1, -(-len(problems) // (SHARES * count)))
    # Ray pickles what it sends. That is between processes of this user that run this code; nothing that came from a
    # file or from the ledger is ever unpickled.
    remote_share, release = ray.remote(_share), version(PACKAGE)
    pending: deque[Any] = deque()
    answers: list[Answer] = []
    try:
        for start in range(0, len(problems), step):
            if len(pending) == 2 * count:
                answers += _fetched(pending.popleft())
            pending.append(remote_share.remote(problems[start : start + step], judge_one, seed, release))
        while pending:
            answers += _fetched(pending.popleft())
    finally:
        for reference in pending:
            ray.cancel(reference)
    return answers


def _fetched(reference: Any) -> Any:
    """The answers of one share, copied out of the cluster's memory, which is gone when it stops."""
    ray = _ray()
    try:
        return copy.deepcopy(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, ReplayError):
            raise ReplayError(str(error.cause)) from None
        raise ReplayError(f"a process of the Ray cluster failed: {_line(error.cause)}; try engine 'auto'") from None
    except ray.exceptions.RayError as error:
        raise ReplayError(f"the Ray cluster failed: {_line(error)}; see `ray status`, or use engine 'auto'") from None


def _share(
    problems: Sequence[ProblemMeasurements], judge_one: ProblemQuestion[Answer], seed: int, release: str
) -> list[Answer]:
    """The answers of some problems, in a process of the cluster; it must run the same release as the caller."""
    if version(PACKAGE) != release:
        raise ReplayError(
            f"a process of the Ray cluster has {PACKAGE} {version(PACKAGE)}, this one {release}: install the same"
            " release on every machine"
        )
    return list(one_by_one(problems, judge_one, seed))


def _line(error: object) -> str:
    """The kind of an error and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


def _ray() -> Any:
    """The package ray; ReplayError where it is not installed."""
    try:
        import ray
    except ImportError:
        raise ReplayError("engine 'ray' needs the package ray; pip install 'lapledger[ray]'") from None
    return ray
