"""The entry point `lap`: finds the command's module, runs it, and turns every failure into one line and an exit code.

Commands are loaded only when they are called: `lap --help` imports no database, no arrays and no terminal toolkit.
"""

import importlib
import io
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from lapledger.ledger.errors import LapError, UserError, io_fault
from lapledger.ledger.failpoint import POINTS, arm
from lapledger.replay.errors import ReplayError

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("system.demo", "Run the main job on four problems of the corpus, start to finish."),
    "ledger": ("storage.ledger", "Make, inspect, seal and verify a ledger."),
    "corpus": ("data.corpus", "Import problem packages; decide on labels and filters after a run."),
    "import": (
        "data.imports",
        "Turn result files of other tools into campaigns, with their provenance.",
    ),
    "problems": (
        "analysis.problems",
        "List problems with their programs, tests and duration spread.",
    ),
    "run": (
        "execution.run",
        "Run programs on tests in the sandbox; interrupt and resume as you like.",
    ),
    "worker": (
        "execution.worker",
        "Run what campaigns ask for, beside other workers, until it is stopped.",
    ),
    "sink": ("storage.sink", "Bring the stream into the ledger as it arrives, until it is stopped."),
    "seal": (
        "storage.seal",
        "Seal the tail into Parquet and merge segments, once or until it is stopped.",
    ),
    "quarantine": (
        "storage.quarantine",
        "Show what could not be admitted, and try it again after a fix.",
    ),
    "calibrate": (
        "execution.calibrate",
        "Map one campaign's stored reference durations into another's state.",
    ),
    "replay": (
        "analysis.replay",
        "Ask stored results a question: p_tau and pass@k under any criterion.",
    ),
    "compare": (
        "analysis.compare",
        "Hold two models against each other: paired, by tier, by speed, beside noise.",
    ),
    "diff": (
        "analysis.diff",
        "List the verdicts that differ between two replays, and the timings behind.",
    ),
    "sweep": (
        "analysis.sweep",
        "Replay a criterion over a grid of tau, timeout and scaled references.",
    ),
    "matrix": (
        "analysis.matrix",
        "Judge every training run by every criterion, and compare the criteria.",
    ),
    "robustness": (
        "analysis.robustness",
        "Show whether a gain survives a slower or faster sandbox.",
    ),
    "curve": (
        "analysis.curve",
        "Draw p_tau of every checkpoint of a training run, by difficulty tier.",
    ),
    "simulate": (
        "analysis.simulate",
        "Say what criteria would pay for programs of known quality, offline.",
    ),
    "export": (
        "data.export",
        "Write answers in others' shapes, or a bundle that replays without a ledger.",
    ),
    "reward": ("audit.reward", "Assign rewards under a criterion, as events."),
    "trace": ("audit.trace", "Follow a reward down to raw timings, and compute it again."),
    "verify": ("audit.verify", "Prove the ledger, and compute every reward again."),
    "why": ("audit.why", "Say why a program passed or failed, and what would flip it."),
    "sql": ("analysis.sql", "Run a read-only SELECT over the documented views."),
    "config": ("system.config", "Show each setting and where it comes from."),
    "tui": ("system.screen", "Open the terminal screens."),
    "up": ("system.up", "Start a real Kafka broker and PostgreSQL on this machine."),
    "down": ("system.down", "Stop the servers that `lap up` started."),
    "status": (
        "system.status",
        "Say whether the ledger and its servers are well, for people and probes.",
    ),
    "doctor": ("system.doctor", "Check this machine: sandbox, disk, packages."),
    "docs": ("system.docs", "Write the reference pages that are generated from the code."),
}


class ClosedPagerError(Exception):
    """Whoever read our output has seen enough."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the main job."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command's own click object, loaded now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"lapledger.commands.{COMMANDS[cmd_name][0]}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Calls a command; a closed pager leaves as `ClosedPagerError`, as click itself would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPagerError from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands from the table, so that help loads none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="lapledger", prog_name="lap")
def lap() -> None:
    """An event-sourced experiment ledger with replayable evaluation, for people who train models to write fast code.

    \b
    Example:
      lap ledger init
      lap corpus import corpus/stonegame
      lap run --limit 2
      lap replay --tau 100 --tau 30
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs `lap` and exits: 0 when all went well, 2 for the user's mistake, 1 for ours, 130 after Ctrl-C."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one call of `lap`; failures are told in one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a sign shows its number
    logging.lastResort = logging.NullHandler()  # what libraries log is told once, as our own failure, or not at all
    try:
        _arm_crash(os.environ.get("LAP_CRASH", ""))
        code = lap.main(args=None if arguments is None else list(arguments), prog_name="lap", standalone_mode=False)
        sys.stdout.flush()  # a closed pager shows here, not after the last word
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        place = context.command_path if context else "lap"
        return _tell(f"{error.format_message().rstrip('.')}; see `{place} --help`", error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _tell("interrupted; run the same command again to go on", 130)
    except (BrokenPipeError, ClosedPagerError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # a closed pager is no mistake
        return 0
    except LapError as error:
        return _tell(str(error), error.exit_code)
    except ReplayError as error:
        return _tell(str(error), 2)
    except Exception as error:  # noqa: BLE001  (the last line of defence: one line, never a traceback)
        return _unexpected(error)


def _arm_crash(word: str) -> None:
    """Arms the crash point that LAP_CRASH names, `POINT` or `POINT:HITS`, for tests; UserError for an unknown one."""
    if not word:
        return
    point, _, hits = word.partition(":")
    try:
        arm(point, int(hits or 1))
    except (KeyError, ValueError):
        known = ", ".join(sorted(POINTS))
        raise UserError(f"LAP_CRASH={word!r} is no crash point; write POINT:HITS, one of {known}") from None


def _unexpected(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno:
        fault = io_fault(error, f"cannot use {error.filename or 'a file'}")
        return _tell(str(fault), fault.exit_code)
    if os.environ.get("LAP_DEBUG"):
        raise error
    return _tell(f"internal error: {type(error).__name__}: {error}; set LAP_DEBUG=1 to see where", 1)


def _tell(message: str, code: int) -> int:
    words = " ".join(message.split())
    click.echo(f"lap: {''.join(c if c.isprintable() else '?' for c in words)}", err=True)
    return code
