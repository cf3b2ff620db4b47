"""`lap doctor`: what this machine has and lacks, with what to do about each lack."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import click

from tui.output import json_option, ledger_option, print_json, print_table
from tui.settings import read_settings

LOW_DISK_BYTES = 1 << 30


@click.command()
@ledger_option
@json_option
def command(ledger: str | None, as_json: bool) -> None:
    """Check the sandbox, the disk and the optional packages of this machine. Exit code 1 when programs cannot run.

    \b
    Example:
      lap doctor
    """
    from ledger.errors import LapError

    root = read_settings(ledger=ledger).ledger
    rows = []
    working = True
    try:
        rows += _sandbox()
    except LapError as error:
        working = False
        rows.append(("sandbox", "broken", str(error)))
    rows += [_disk(root), ("cores", str(os.cpu_count()), "half of them time programs by default"), *_extras()]
    if as_json:
        print_json({name: {"state": state, "advice": advice} for name, state, advice in rows})
    else:
        print_table(("part", "state", "advice"), rows)
    if not working:
        raise click.exceptions.Exit(1)


def _sandbox() -> list[tuple[str, str, str]]:
    from producers.sandbox.choose import measure_startup, open_sandbox

    sandbox = open_sandbox()
    startup_ms = measure_startup(sandbox, 5) / 1e6
    return [
        ("sandbox", sandbox.isolation, sandbox.warning),
        ("interpreter", sandbox.interpreter.version, f"an empty program takes {startup_ms:.1f} ms"),
    ]


def _disk(root: Path) -> tuple[str, str, str]:
    place = next(parent for parent in (root.absolute(), *root.absolute().parents) if parent.exists())
    free = shutil.disk_usage(place).free
    return ("disk", f"{free >> 30} GiB free", "" if free > LOW_DISK_BYTES else f"free some space on {place}")


def _extras() -> list[tuple[str, str, str]]:
    rows = [_extra("kafka", "kafka"), _extra("psycopg", "postgres"), _extra("torch", "models"), _extra("vllm", "vllm")]
    if find_spec("kafka") and not find_spec("crc32c"):
        rows.append(("crc32c", "missing", "kafka-python is slow without it: pip install 'lapledger[kafka]'"))
    return rows


def _extra(module: str, extra: str) -> tuple[str, str, str]:
    return (
        (module, "present", "")
        if find_spec(module)
        else (module, "absent", f"optional: pip install 'lapledger[{extra}]'")
    )
