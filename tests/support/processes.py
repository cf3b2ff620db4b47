"""Services for tests: real processes of `lap` whose log is read, and that are stopped, killed and waited for."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.lap import LAP, environment

SECONDS = 180.0
"""How long a test waits for something to become true before it fails: far more than it takes."""


def until(true: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """What `true` gives as soon as it is anything but false; a failure that says `what` when the time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := true()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s: {what}"
        time.sleep(0.02)
    return answer


class Service:
    """One `lap` service as a process of its own, with its log."""

    def __init__(self, log: Path, arguments: tuple[str, ...], **more: str) -> None:
        self.log = log
        with log.open("w") as err:
            self.process = subprocess.Popen(
                [LAP, *arguments], env=environment(**more), stdout=err, stderr=err, start_new_session=True
            )

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """The whole lines of its log so far, about one thing or all."""
        complete = self.log.read_text().rpartition("\n")[0].splitlines()
        entries = [json.loads(line) for line in complete]
        return [line for line in entries if event in (None, line["event"])]

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Waits until it has told of something."""
        return until(lambda: self._alive() and self.lines(event), f"{self.log.name} tells of {event!r}")

    def share(self) -> frozenset[str]:
        """The partitions that it was assigned last."""
        assigned = self.lines("assigned")
        return frozenset(assigned[-1]["partitions"]) if assigned else frozenset()

    def children(self) -> list[int]:
        """The processes that it runs now."""
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for children in lists for pid in children.read_text().split()]

    def send(self, number: int) -> None:
        """A signal to this process alone."""
        os.kill(self.process.pid, number)

    def ended(self) -> int:
        """Waits for its end; the exit code, or minus the signal that ended it."""
        return self.process.wait(SECONDS)

    def stop(self) -> int:
        """Stops it as a supervisor does."""
        self.send(signal.SIGTERM)
        return self.ended()

    def _alive(self) -> bool:
        code = self.process.poll()
        assert code is None, f"{self.log.name} ended with {code}:\n{self.log.read_text()}"
        return True


class Services:
    """The services of one test on one ledger; what still runs at its end is killed."""

    def __init__(self, folder: Path, ledger: Path, **more: str) -> None:
        self.folder, self.ledger, self.more = folder, ledger, more
        self.started: list[Service] = []

    def start(self, *arguments: object, **more: str) -> Service:
        """A service by the words of its command."""
        log = self.folder / f"{len(self.started)}-{arguments[0]}.log"
        command = (*(str(argument) for argument in arguments), "--ledger", str(self.ledger))
        self.started.append(Service(log, command, **self.more, **more))
        return self.started[-1]

    def shared(self, *services: Service, partitions: int) -> None:
        """Waits until these services have divided so many partitions among themselves, each with some."""

        def divided() -> bool:
            shares = [service.share() for service in services]
            return all(shares) and sum(map(len, shares)) == len(frozenset().union(*shares)) == partitions

        until(divided, f"{len(services)} services share {partitions} partitions")


@contextmanager
def services_on(folder: Path, ledger: Path, **more: str) -> Iterator[Services]:
    """Services on a ledger, with more settings in their environment; none is left running."""
    services = Services(folder, ledger, **more)
    try:
        yield services
    finally:
        for service in services.started:
            if service.process.poll() is None:
                os.killpg(service.process.pid, signal.SIGKILL)
                service.process.wait(SECONDS)
