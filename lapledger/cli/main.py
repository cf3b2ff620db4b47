"""The entry point `lap`: finds the command's module, runs it, and turns every failure into one line and an exit code.

Commands are loaded only when they are called: `lap --help` imports no database, no arrays and no terminal toolkit.
"""

import io
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from lapledger.cli.groups import HelpGroup
from lapledger.ledger.errors import LapError, UserError, io_fault, nearest
from lapledger.ledger.failpoint import POINTS, arm
from lapledger.ledger.redaction import redacted
from lapledger.workflows.interrupts import handle_interrupts, ignore_interrupts

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Get started": {
        "demo": ("system.demo", "Run the full workflow on four sample problems."),
        "doctor": ("system.doctor", "Check this machine: sandbox, disk, optional packages."),
        "config": ("system.config", "Show every setting and where its value comes from."),
        "completion": ("system.completion", "Print the shell completion script for bash, zsh or fish."),
    },
    "Bring in problems and results": {
        "import": ("data.imports", "Import problem packages, or result files of other tools."),
        "problems": ("analysis.problems", "List problems with their tests, programs and duration spread."),
    },
    "Run programs": {
        "run": ("execution.run", "Run programs on tests in a sandbox; interruptible and resumable."),
        "filter": ("data.filter", "Exclude contradicted labels and problems too short to time."),
    },
    "Evaluate stored results": {
        "replay": ("analysis.replay", "Re-evaluate stored results under any criterion (p_tau, pass@k)."),
        "criteria": ("analysis.criteria", "List criterion presets and every criterion key."),
        "compare": (
            "analysis.compare",
            "Compare two models: paired tests, by tier and speed, with a noise baseline.",
        ),
        "diff": ("analysis.diff", "List verdicts that differ between two replays or criteria."),
        "sweep": ("analysis.sweep", "Evaluate a grid of thresholds, limits and scaled references."),
        "matrix": ("analysis.matrix", "Evaluate every training run under every criterion."),
        "robustness": ("analysis.robustness", "Check whether a gain survives a slower or faster sandbox."),
        "curve": ("analysis.curve", "Plot p_tau of every checkpoint of a training run."),
        "simulate": (
            "analysis.simulate",
            "Estimate the rewards a criterion assigns to programs of known quality.",
        ),
        "calibrate": ("execution.calibrate", "Fit a map from one campaign's reference timings to another's."),
        "sql": ("analysis.sql", "Run a read-only SELECT over the documented views."),
        "tui": ("system.screen", "Browse campaigns, problems and programs in the terminal."),
        "export": ("data.export", "Export results in other tools' formats, or as a bundle."),
    },
    "Explain and prove": {
        "reward": ("audit.reward", "Assign rewards under a criterion, stored as events."),
        "why": ("audit.why", "Explain a verdict, and the smallest change that would flip it."),
        "trace": ("audit.trace", "Trace a reward back to its raw timings, and recompute it."),
        "verify": ("audit.verify", "Verify the ledger's integrity, and recompute every reward."),
    },
    "Maintain the ledger": {
        "ledger": ("storage.ledger", "Create a ledger; compact, repair, back up or migrate it."),
        "seal": ("storage.seal", "Seal new events into immutable Parquet segments."),
        "quarantine": ("storage.quarantine", "Show records that could not be admitted, and retry them."),
        "status": ("system.status", "Health check (exit code for probes)."),
    },
    "Run as services": {
        "sink": ("storage.sink", "Continuously ingest the stream into the ledger."),
        "worker": ("execution.worker", "Run a worker that executes queued jobs."),
        "up": ("system.up", "Start a local Kafka broker and PostgreSQL."),
        "down": ("system.down", "Stop the servers that `lap up` started."),
    },
    "System": {
        "docs": ("system.docs", "Write the reference pages that are generated from the code."),
    },
}
"""Section -> command -> its module in `lapledger.commands`, and its one line of help."""
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class ClosedPagerError(Exception):
    """The reader of our output, such as a pager, has closed it."""


class LapGroup(HelpGroup):
    """The group `lap`: commands in sections by task, each imported only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the sections."""
        return list(COMMANDS)

    def invoke(self, ctx: click.Context) -> Any:
        """The command's result; a closed pager leaves as `ClosedPagerError`, as click itself would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPagerError from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the sections from the table, so that help imports no command."""
        longest = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(longest), text) for name, (_, text) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completions of commands from the table, and of options."""
        names = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=LapGroup,
    lazy={name: f"lapledger.commands.{module}:command" for name, (module, _) in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="lapledger", prog_name="lap")
def lap() -> None:
    """An event-sourced experiment ledger with replayable evaluation, for people who train models to write fast code.

    It runs programs on tests in a sandbox and stores every timing as an immutable record. Verdicts, percentiles and
    rewards are computed from these records: stored results are re-scored under any criterion, nothing is re-executed.

    \b
    Example:
      lap ledger init
      lap import icpc corpus/stonegame
      lap run --limit 2
      lap replay --tau 100 --tau 30
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs `lap` and exits: 0 when all went well, 2 for the user's mistake, 1 for ours, 130 after Ctrl-C."""
    handle_interrupts()
    code = run(arguments)
    ignore_interrupts()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one call of `lap`; a failure is one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character shows its code
    logging.lastResort = logging.NullHandler()  # what libraries log is reported once, as our own failure, or not at all
    try:
        _arm_crash(os.environ.get("LAP_CRASH", ""))
        code = lap.main(args=None if arguments is None else list(arguments), prog_name="lap", standalone_mode=False)
        sys.stdout.flush()  # a closed pager raises here, not at exit
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _usage(error)
    except (KeyboardInterrupt, click.Abort):
        return _report("interrupted; rerun the same command to resume", 130)
    except (BrokenPipeError, ClosedPagerError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # a closed pager is no error
        return 0
    except LapError as error:
        return _report(str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001  (the last line of defence: one line, never a traceback)
        return _unexpected(error)


def _arm_crash(text: str) -> None:
    """Arms the crash point that LAP_CRASH names, `POINT` or `POINT:HITS`, for tests; UserError for an unknown one."""
    if not text:
        return
    point, _, hits = text.partition(":")
    try:
        arm(point, int(hits or 1))
    except (KeyError, ValueError):
        known = ", ".join(sorted(POINTS))
        raise UserError(f"LAP_CRASH={text!r} is no crash point; write POINT:HITS, one of {known}") from None


def _usage(error: click.ClickException) -> int:
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        message = f"no such option {error.option_name!r}{nearest(error.option_name, error.possibilities or ())}"
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "lap"
    return _report(f"{message}{' See' if message.endswith('?') else '; see'} `{path} --help`", error.exit_code)


def _unexpected(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno:
        fault = io_fault(error, f"cannot use {error.filename or 'a file'}")
        return _report(str(fault), fault.exit_code)
    if os.environ.get("LAP_DEBUG"):
        raise error
    return _report(f"internal error: {type(error).__name__}: {error}; set LAP_DEBUG=1 to see where", 1)


def _report(message: str, code: int) -> int:
    line = redacted(" ".join(message.split()))
    click.echo(f"lap: {''.join(c if c.isprintable() else '?' for c in line)}", err=True)
    return code
