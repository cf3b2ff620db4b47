"""`lap tui` in a real terminal: it draws, quits with exit code 0, and gives the terminal back as it was."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import pytest

from tests.support.screen_ledgers import REFERENCES, make_campaign

LAP = (sys.executable, "-c", "from lapledger.cli.main import main; main()", "tui")
LONGEST = 120  # seconds; a machine under load is slow to start Python
LEAVE_ALTERNATE_SCREEN, SHOW_CURSOR = b"\x1b[?1049l", b"\x1b[?25h"


class Terminal:
    """One end of a pseudo-terminal with `lap tui` at the other."""

    def __init__(self, process, master, slave):
        self.process, self._master, self._slave = process, master, slave
        self.before = termios.tcgetattr(slave)
        self.seen = b""

    def read_until(self, args):
        """Reads what is drawn until the words are on the screen; fails when they never come."""
        deadline = time.monotonic() + LONGEST
        while args not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            if select.select([self._master], [], [], 0.2)[0]:
                self.seen += os.read(self._master, 65536)
            else:
                assert self.process.poll() is None or args in self.seen, self.seen[-2000:]

    def write(self, keys):
        os.write(self._master, keys)

    def ended(self):
        """(exit code, True when the terminal's settings are as they were)."""
        deadline = time.monotonic() + LONGEST
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen[-2000:]
            self._drain()
        self._drain()
        return self.process.returncode, termios.tcgetattr(self._slave) == self.before

    def _drain(self):
        while select.select([self._master], [], [], 0.2)[0]:
            self.seen += os.read(self._master, 65536)


@contextmanager
def terminal(*arguments, size=(24, 80)):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    before = termios.tcgetattr(slave)
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    process = subprocess.Popen(
        [*LAP, *arguments], **streams, env={**os.environ, "TERM": "xterm-256color"}, start_new_session=True
    )
    opening = Terminal(process, master, slave)
    opening.before = before
    try:
        yield opening
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("command") / "ledger"
    make_campaign(root, REFERENCES)
    return str(root)


@pytest.mark.parametrize("keys", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_quitting_restores_the_terminal_and_exits_with_zero(root, keys):
    with terminal("--ledger", root) as screen:
        screen.read_until(b"nightly")
        screen.write(keys)
        assert screen.ended() == (0, True)
        assert LEAVE_ALTERNATE_SCREEN in screen.seen
        assert screen.seen.rindex(SHOW_CURSOR) > screen.seen.index(b"nightly")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals_end_it_as_cleanly(root, number, code):
    """An interrupt is a wish to quit; a termination is told by the usual exit code, 128 + 15."""
    with terminal("--ledger", root, size=(12, 40)) as screen:
        screen.read_until(b"nightly")
        screen.process.send_signal(number)
        assert screen.ended() == (code, True)
        assert LEAVE_ALTERNATE_SCREEN in screen.seen


def test_a_folder_without_a_ledger_is_reported_in_one_line(tmp_path):
    with terminal("--ledger", str(tmp_path)) as screen:
        assert screen.ended() == (2, True)
        logged = screen.seen.rpartition(LEAVE_ALTERNATE_SCREEN)[2]
        assert b"lap: there is no ledger in" in logged.replace(b"\r\n", b" ")
        assert b"Traceback" not in screen.seen


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        (("--criterion", "top-31"), "no criterion preset 'top-31'"),
        (("--criterion", "nowhere.toml"), "criterion file nowhere.toml"),
        ((), "lap tui needs a terminal"),
    ],
)
def test_mistakes_are_reported_before_anything_is_drawn(root, arguments, args):
    logged = subprocess.run(
        [*LAP, "--ledger", root, *arguments], capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False
    )
    assert logged.returncode == 2
    assert args in logged.stderr
    assert logged.stderr.count("\n") == 1
    assert logged.stdout == ""
