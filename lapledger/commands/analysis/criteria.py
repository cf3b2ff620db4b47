"""`lap criteria`: the presets, and every criterion key with its meaning, allowed values and default."""

from typing import Any

import click

from lapledger.cli.options import json_option
from lapledger.render.output import print_json, print_line, print_table
from lapledger.render.preset_text import as_toml, meaning
from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.fields import GROUPS
from lapledger.workflows.analysis.criterion_arguments import read_criterion


@click.command()
@click.argument("name", required=False, metavar="[NAME|FILE]")
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List criterion presets and every criterion key, or show one preset or TOML file.

    A criterion defines how stored measurements are scored. Set its keys with --criterion, --set and --tau.

    \b
    Example:
      lap criteria
      lap criteria top-30
      lap criteria strict.toml --json
    """
    if name is not None:
        _show(*read_criterion(name, {}), as_json=as_json)
    elif as_json:
        print_json({"presets": [_plain(*item) for item in PRESETS.items()], "keys": _keys()})
    else:
        rows = [(preset, criterion.hash[:12], meaning(preset)) for preset, criterion in PRESETS.items()]
        print_table(("preset", "hash", "meaning"), rows, title="presets: --criterion NAME")
        columns = ("key", "default", "allowed values", "meaning")
        for title, fields in GROUPS.items():
            docs = [field.doc for field in fields]
            keys = [(doc.name, _default(doc.default), doc.allowed, doc.meaning) for doc in docs]
            print_table(columns, keys, title=f"{title}: --set KEY=VALUE")


def _show(name: str, criterion: Criterion, *, as_json: bool) -> None:
    if as_json:
        print_json(_plain(name, criterion))
        return
    print_line(f"# {name}: {meaning(name)}" if name in PRESETS else f"# {name}")
    print_line(f"# hash {criterion.hash}")
    print_line("\n".join(as_toml(criterion)) or "# every key has its default")


def _plain(name: str, criterion: Criterion) -> dict[str, Any]:
    return {
        "name": name,
        "meaning": meaning(name) if name in PRESETS else None,
        "hash": criterion.hash,
        "keys": criterion.changed(),
        "canonical": criterion.canonical().decode(),
    }


def _keys() -> list[dict[str, Any]]:
    return [
        {
            "key": field.doc.name,
            "group": group,
            "meaning": field.doc.meaning,
            "allowed": field.doc.allowed,
            "default": field.doc.default,
        }
        for group, fields in GROUPS.items()
        for field in fields
    ]


def _default(value: str | int | None) -> str:
    return "none" if value is None else str(value)
