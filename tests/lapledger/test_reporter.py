"""Reporters: what use cases report reaches stderr or the program's own log, never stdout."""

import io
import logging

import pytest
from rich.console import Console

from lapledger.render import output, terminal
from lapledger.render.terminal import TERMINAL
from lapledger.workflows.reporter import LOGGING, Reporter


def report(reporter: Reporter) -> None:
    """One message, one warning and a task of two steps."""
    reporter.message("started")
    reporter.warning("the disk is slow")
    with reporter.progress("running", 2) as bar:
        bar.advance()
        bar.update(2, total=2, note="2 ok")


def test_the_terminal_prints_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is marked; no bar is drawn where stderr is no terminal."""
    report(TERMINAL)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "started\nwarning: the disk is slow\n")


def test_a_line_stands_in_for_the_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no bar is drawn a task that reports its state gets a line once the last one is old."""
    monkeypatch.setattr(terminal, "LINE_SECONDS", -1)
    with TERMINAL.progress("running", 8) as bar:
        bar.update(3)
        bar.update(5, total=9, note="4 ok, 1 crash")
    assert capsys.readouterr().err == "running: 3 of 8 done\nrunning: 5 of 9 done (4 ok, 1 crash)\n"


def test_the_library_reporter_prints_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Messages go to the logger `lapledger`, with their level, for programs that configure logging."""
    with caplog.at_level(logging.INFO, logger="lapledger"):
        report(LOGGING)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "started"),
        ("WARNING", "the disk is slow"),
    ]


def test_a_name_beside_a_bar_commands_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's name is shown as it is: no markup is read, and an escape sequence is replaced."""
    screen = io.StringIO()
    monkeypatch.setattr(output, "Console", lambda **_: Console(file=screen, force_terminal=True, width=100))
    with output.progress("a[bold]\x1b[2Jb", 1):
        pass
    assert "a[bold]\ufffd[2Jb" in screen.getvalue()
