"""YAML documents of a package as mappings of plain text. Pure; no file is opened here.

Every scalar stays the text that its author wrote: no value turns into a date, a truth value or a surprising number, and
no tag constructs anything. Aliases are refused, so that a small document cannot grow into a large one.
"""

from typing import Any

import yaml

from lapledger.ledger.errors import UserError

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_NESTING = 20

Document = dict[str, Any]
"""Keys to text, lists or documents."""

_NOTHING = ("", "~", "null", "Null", "NULL")


def parse(data: bytes, where: str) -> Document:
    """The mapping that a YAML document holds, {} when it is empty; UserError names the line that is broken."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise UserError(f"{where}: {len(data)} bytes of YAML, above the limit of {MAX_DOCUMENT_BYTES}; shorten it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{where}, line {line}: not UTF-8; save the file as UTF-8") from error
    try:
        _check_growth(text, where)
        value = yaml.BaseLoader(text).get_single_data()
    except yaml.YAMLError as error:
        raise UserError(f"{where}, line {_line(error, text)}: broken YAML ({_problem(error)}); correct it") from error
    if value is None or value == "":
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UserError(f"{where}: not a mapping of names to values; write lines like `name: A title`")
    return value


def text_of(value: object, where: str, *, key: str) -> str:
    """A value as one line of text, "" when it says nothing; of a mapping its `en` or first value, of a list all."""
    if isinstance(value, dict):
        value = value.get("en") or value.get("name") or next(iter(value.values()), "")
    if isinstance(value, list):
        return "; ".join(filter(None, (text_of(item, where, key=key) for item in value)))
    if value is None or value in _NOTHING:
        return ""
    line = " ".join(str(value).split())
    if not line.isprintable():
        raise UserError(f"{where}: `{key}` holds unprintable characters; remove them")
    return line


def _check_growth(text: str, where: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.BaseLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > MAX_NESTING:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise UserError(f"{where}, line {line}: an alias, or nested deeper than {MAX_NESTING}; write it out flat")


def _line(error: yaml.YAMLError, text: str) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return mark.line + 1 if mark else text.count("\n", 0, getattr(error, "position", 0)) + 1


def _problem(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    return " ".join(str(problem).split())
