"""The language of the project is the field's: names in code, help texts and pages use no word of the private idiom.

What is left is counted by folder and by page. A count may only shrink: lower it in the commit that removes a word.
"""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lapledger.cli.main import lap

ROOT = Path(__file__).resolve().parents[1]

PARTS = {
    "maker": "model",
    "makers": "models",
    "place": "partition, offset, position, location or path",
    "places": "partitions, offsets, positions, locations or paths",
    "placed": "what was done: renamed, assigned, ...",
    "told": "encoded, message, reported",
    "tell": "log, report",
    "tells": "log, report",
    "telling": "replay_table",
    "heard": "already_appended",
    "hear": "on_progress",
    "said": "message, output",
    "say": "report",
    "says": "report",
    "asked": "requested, criterion, arguments",
    "ask": "request, query",
    "asks": "requests",
    "asking": "request",
    "word": "text, message, token, identifier",
    "words": "texts, messages, tokens, arguments",
    "aside": "quarantined",
    "untold": "UNSPECIFIED_FAILURE",
    "rests": "RewardDependencies",
    "court": "JudgingContext",
    "convene": "build_context",
    "weighed": "Evaluation",
    "weigh": "evaluate",
    "weighing": "evaluation",
    "tried": "TestResults",
    "crowd": "ProgramsByModel",
    "crowds": "ProgramsByModel",
    "mended": "repaired",
    "side": "comparison arm",
    "sides": "comparison arms",
    "trainees": "rollout_runner",
    "whole": "complete, all; atomic_write for files",
    "lend": "reuse_executions",
    "borrowed": "shared_executions",
    "beyond": "censored_below_limit",
    "opened": "open_ledger",
    "gathered": "collected",
    "dividing": "partition_assignment",
    "following": "service_loop",
    "edge": "ServiceContext",
    "cautions": "warnings",
}
"""A part of an identifier -> the terms to use instead."""

NAMES = ("found", "one", "own", "other", "others", "many", "each", "ones")
"""Identifiers that name no thing."""

EXEMPT = {"CampaignOpened", "CampaignOpenedV2", "EpochOpened", "GroupOpened", "GroupOpenedV1"}
"""Classes of stored event types, whose names are contracts."""
EXEMPT |= {"campaign_opened", "epoch_opened", "group_opened", "Beyond", "mercury_beyond"}
"""The SQL views of these types, and a published metric that has one of the words in its name."""

PHRASES = {
    r"makers?": "model, author",
    r"(is|are|was|were) told|told shortly|tells? of": "reported",
    r"made anew": "recreated",
    r"put aside": "quarantined",
    r"left out": "excluded",
    r"computed again": "recomputed",
    r"nothing (was|is) run": "no programs were re-executed",
    r"works? (left|have|has)": "executions, jobs",
    r"in good order": "gracefully",
    r"a word to keep|prints a word": "the ledger's head hash",
    r"rests when": "lease timeout",
    r"beside noise|beside other workers": "with a noise baseline; next to other workers",
    r"hold (two|them|makers|models) .{0,20}against": "compare",
    r"for a try": "to try it",
    r"on purpose (wrong|crashing|too slow)": "deliberately",
    r"ask stored results|asks? .{0,20} a question|question that is put": "re-evaluate, re-score",
    r"what flips it": "would pass if",
    r"files that nobody names": "unreferenced files",
    r"(in|into) others' shapes": "in other tools' formats",
    r"criteria would pay": "rewards a criterion assigns",
    r"are well, for people": "health check",
    r"p over all comparisons": "multiple-comparison correction",
    r"short forms": "compact encodings",
    r"the way of a fact": "event lifecycle",
    r"as its filter keeps": "the filter removes",
    r"what campaigns ask for": "queued jobs",
    r"the facts deny": "no longer matches the data",
    r"marked runs before": "warm-up runs",
    r"for ever": "permanently, unchanged",
    r"the (replay )?kernel": "scoring engine",
    r"what is held": "idempotent",
}
"""What the private idiom says (without case, from the start of a word) -> what a reader of this field expects."""

LEFT = {
    "bench": 0,
    "consumers": 0,
    "lapledger": 0,
    "ledger": 0,
    "migrations": 0,
    "producers": 0,
    "replay": 0,
    "tests": 0,
    "tui": 0,
}
"""Folder -> identifiers that are still to be renamed."""

LEFT_ON_PAGES = {}
"""Page -> phrases that are still to be rewritten; a page that is not here has none."""

LEFT_IN_HELP = 0

PAGES = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md") if path.stem != "glossary"),
]
"""All pages but the glossary, which quotes the old terms."""


def identifiers(path: Path) -> Iterator[str]:
    """Every name that a module defines or assigns, and its own."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg="other"):
                pass  # the usual name of an operator's second operand
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name


def is_private(name: str) -> bool:
    """Whether an identifier is of the private idiom, or a part of it."""
    parts = {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return name not in EXEMPT and (name.strip("_").lower() in NAMES or not parts.isdisjoint(PARTS))


def python_files(folder: str) -> set[Path]:
    """Every module below a folder; links are not followed."""
    return {Path(root) / name for root, _, names in os.walk(ROOT / folder) for name in names if name.endswith(".py")}


def private_names(folder: str) -> list[str]:
    """The file and the name of each identifier of the private idiom below a folder."""
    return [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted(python_files(folder) - {Path(__file__)})
        for name in identifiers(path)
        if is_private(name)
    ]


def private_phrases(text: str) -> list[str]:
    """The phrases of the private idiom in a text, with what to write instead."""
    flat = " ".join(text.split())
    return [
        f"{match.group()!r}: write {better!r}"
        for phrase, better in PHRASES.items()
        for match in re.finditer(rf"\b(?:{phrase})\b", flat, re.IGNORECASE)
    ]


def help_texts(command: click.Command, context: click.Context) -> Iterator[str]:
    """The help of a command and of all commands below it."""
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from help_texts(below, click.Context(below, context, name))


@pytest.mark.parametrize("name", ["told", "_tell", "SideTable", "one", "_found", "campaign_place", "opened_ledger"])
def test_the_scan_sees_a_private_name(name: str) -> None:
    """In snake case and camel case, as a part or as the entire name."""
    assert is_private(name)


@pytest.mark.parametrize("name", ["one_by_one", "placeholder", "CampaignOpened", "foundation", "hedges", "wordy_"])
def test_the_scan_passes_other_names(name: str) -> None:
    """A longer word, an event's name, and `one` as a part are none."""
    assert not is_private(name)


@pytest.mark.parametrize("folder", LEFT)
def test_names_in_code_are_the_field_s(folder: str) -> None:
    """No identifier says it in the private idiom; `PARTS` has the term to use instead."""
    names = private_names(folder)
    assert len(names) <= LEFT[folder], "\n".join(names)


@pytest.mark.parametrize("folder", [folder for folder in LEFT if folder not in ("tests", "bench")])
def test_texts_in_code_are_written_for_a_reader_of_this_field(folder: str) -> None:
    """Docstrings and messages; the kernel of the sandbox is that of the operating system."""
    phrases = [
        f"{path.relative_to(ROOT)}: {phrase}"
        for path in sorted(python_files(folder))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for phrase in private_phrases(node.value)
        if not (phrase.lower().startswith("'the kernel'") and "sandbox" in path.parts)
    ]
    assert phrases == []


def test_help_is_written_for_a_reader_of_this_field() -> None:
    """Every command's help text, as it is printed."""
    phrases = [
        phrase
        for text in help_texts(lap, click.Context(lap, info_name="lap", **lap.context_settings))
        for phrase in private_phrases(text)
    ]
    assert len(phrases) <= LEFT_IN_HELP, "\n".join(phrases)


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_written_for_a_reader_of_this_field(page: str) -> None:
    """The README and the pages of the documentation."""
    phrases = private_phrases((ROOT / page).read_text())
    assert len(phrases) <= LEFT_ON_PAGES.get(page, 0), "\n".join(phrases)
