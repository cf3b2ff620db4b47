"""Code Contests (Parquet or JSON Lines): problems with tests and human programs, right and wrong, to be run here.

Read row by row into packages, which the corpus importer takes. Only Python 3 programs are kept: nothing else runs here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapledger.ledger.errors import UserError
from lapledger.producers.corpus.languages import unusable
from lapledger.producers.corpus.package import Excluded, Package, PackageProgram, PackageTest, digest_of
from lapledger.producers.corpus.settings import checked_flags
from lapledger.producers.importers.files import check_file, is_parquet, lines_of, open_parquet, parse_json, shown
from lapledger.producers.importers.model import identifier_part, line
from lapledger.producers.importers.records import Record

FORMAT = "code-contests"
TOOL = "Code Contests"
IMPORTER = f"{FORMAT} 2"
UNKNOWN = (
    "which tests were made to spread run times: private and generated ones are taken for both kinds",
    "how answers are checked: by the default check, too strict for a problem with several right answers",
)
FLOAT_FLAGS = "float_tolerance 1e-6"
"""How answers with decimal fractions are checked where nobody says otherwise: the file does not state it."""
_DECIMAL = re.compile(r"(?<!\S)[+-]?\d+\.\d+(?!\S)")
LANGUAGES = ("UNKNOWN_LANGUAGE", "PYTHON", "CPP", "PYTHON3", "JAVA")
SOURCES = ("UNKNOWN_SOURCE", "CODECHEF", "CODEFORCES", "HACKEREARTH", "CODEJAM", "ATCODER", "AIZU")
_LEVELS = ("UNKNOWN_DIFFICULTY", "EASY", "MEDIUM", "HARD", "HARDER", "HARDEST", "EXTERNAL")
DIFFICULTIES = (*_LEVELS, *"ABCDEFGHIJKLMNOPQRSTUV")
"""The data set's enumerations, by number."""
_PARTS = (("public_tests", "sample", False), ("private_tests", "private", True), ("generated_tests", "generated", True))
_COLUMNS = (
    *("name", "description", "source", "difficulty", "time_limit", "memory_limit_bytes"),
    *("cf_contest_id", "cf_index", "input_file"),
)
_LISTS = ("public_tests", "private_tests", "generated_tests", "solutions", "incorrect_solutions")


@dataclass(frozen=True, slots=True)
class Row:
    """One problem of a file: its package, or why it was excluded."""

    package: Package | None
    reason: str


def count_rows(path: Path) -> int:
    """The number of problems in a file, as far as it tells at once: 0 for JSON Lines."""
    return int(open_parquet(path).metadata.num_rows) if is_parquet(path) else 0


def rows(
    path: Path,
    *,
    license: str = "",  # noqa: A002  (the field's own name)
    flags: str | None = None,
) -> Iterator[Row]:
    """Each problem of a file, read when it is asked for; UserError names the row that is broken, or says that
    there is none.

    `license` is recorded for every problem, and `flags` are those of its answer check: the file states neither. Without
    flags, `FLOAT_FLAGS` count where an answer holds a decimal fraction, and the exact check elsewhere.
    """
    flags = None if flags is None else checked_flags(flags, "--validator-flags")
    check_file(path)
    number = 0
    for number, value in _values(path):
        yield _row(Record.of(value, f"{shown(path.name)}, row {number}"), license, flags)
    if not number:
        raise UserError(f"{shown(path.name)}: holds no problem; give a file of Code Contests, or fetch it again")


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    if not is_parquet(path):
        for number, text in lines_of(path):
            yield number, parse_json(text, f"{shown(path.name)}, line {number}")
        return
    import pyarrow as pa

    file = open_parquet(path)
    known = set(file.schema_arrow.names)
    missing = sorted({"name", *_LISTS} - known)
    if missing:
        raise UserError(f"{shown(path.name)}: has no column {missing[0]!r}; is this an export of Code Contests?")
    number = 0
    try:
        for batch in file.iter_batches(batch_size=8, columns=[c for c in (*_COLUMNS, *_LISTS) if c in known]):
            for value in batch.to_pylist():
                number += 1
                yield number, value
    except (pa.ArrowException, OSError) as error:
        reason = line(str(error))
        raise UserError(f"{shown(path.name)}: broken after row {number} ({reason}); fetch it again") from error


def _row(record: Record, license_: str, flags: str | None) -> Row:
    name = record.text("name")
    tests = tuple(test for part in _PARTS for test in _tests(record, *part))
    programs, excluded = _programs(record)
    if record.value.get("input_file"):
        return Row(None, f"{line(name)}: reads a file instead of standard input")
    if not tests or not programs:
        return Row(None, f"{line(name)}: {'no Python 3 program' if tests else 'no test'}")
    limits = _time_limit(record), _memory_limit(record), None
    if flags is None:
        flags = FLOAT_FLAGS if any(_DECIMAL.search(test.answer.decode()) for test in tests) else ""
    return Row(
        Package(
            slug=identifier_part(name),
            name=line(name),
            source=_source(record),
            license=license_,
            validator_flags=flags,
            grading="",
            time_limit_ns=limits[0],
            memory_limit_bytes=limits[1],
            tier=_named(record, "difficulty", DIFFICULTIES),
            statement=record.text("description").encode() if record.has("description") else None,
            tests=tests,
            programs=programs,
            excluded=excluded,
            digest=digest_of(flags, "", limits, tests),
        ),
        "",
    )


def _tests(record: Record, key: str, group: str, timed: bool) -> Iterator[PackageTest]:
    for number, (given, answer) in enumerate(_pairs(record, key, "input", "output"), 1):
        yield PackageTest(
            path=f"{group}/{number:04d}",
            group=group,
            original=group != "generated",
            correctness=True,
            optimization=timed,
            input=given.encode(),
            answer=answer.encode(),
        )


def _pairs(record: Record, key: str, first: str, second: str) -> list[tuple[str, str]]:
    """Pairs of texts in two lists of equal length."""
    if not record.has(key):
        return []
    both = record.record(key)
    left, right = both.texts(first), both.texts(second)
    if len(left) != len(right):
        raise UserError(f"{both.where}: {len(left)} of {first!r} and {len(right)} of {second!r}; fetch the file again")
    return list(zip(left, right, strict=True))


def _programs(record: Record) -> tuple[tuple[PackageProgram, ...], tuple[Excluded, ...]]:
    kept: dict[str, PackageProgram] = {}
    passed: Counter[str] = Counter()
    for key, label in (("solutions", "accepted"), ("incorrect_solutions", "incorrect")):
        for language, source in _solutions(record, key):
            if language != "PYTHON3":
                passed[f"{label} in {language}"] += 1
            elif "\0" in source:
                passed[f"{label} with a NUL byte"] += 1
            elif reason := unusable(source.encode(), ""):
                passed[f"{label}, {reason}"] += 1
            elif source in kept:
                passed[f"{label}, seen before"] += 1
            else:
                kept[source] = PackageProgram(f"{label}.py", label, source.encode())
    where = record.text("name")
    return tuple(kept.values()), tuple(Excluded(line(where), f"{n} programs {why}") for why, n in passed.items())


def _solutions(record: Record, key: str) -> list[tuple[str, str]]:
    if not record.has(key):
        return []
    both = record.record(key)
    sources, languages = both.texts("solution"), both.items("language")
    if len(sources) != len(languages):
        raise UserError(f"{both.where}: {len(languages)} languages and {len(sources)} programs; fetch the file again")
    return [
        (_name(both, "language", value, LANGUAGES), source) for value, source in zip(languages, sources, strict=True)
    ]


def _named(record: Record, key: str, names: Sequence[str]) -> str | None:
    """The name of an enumeration's value; None where it is unknown."""
    if not record.has(key):
        return None
    name = _name(record, key, record.value[key], names)
    return None if name.startswith("UNKNOWN") else name


def _name(record: Record, key: str, value: Any, names: Sequence[str]) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    if isinstance(value, str) and value in names:
        return value
    raise UserError(f"{record.where}: {key!r} is {shown(value)}, expected 0 to {len(names) - 1} or a name")


def _time_limit(record: Record) -> int | None:
    """The problem's own time limit in ns; None where it has none."""
    if not record.has("time_limit"):
        return None
    limit = record.record("time_limit")
    seconds = limit.integer("seconds") if limit.has("seconds") else 0
    nanoseconds = seconds * 10**9 + (limit.integer("nanos") if limit.has("nanos") else 0)
    if nanoseconds >= 2**60:
        limit.refuse("seconds", "a time limit below 36 years")
    return nanoseconds or None


def _memory_limit(record: Record) -> int | None:
    """The problem's own memory limit in bytes; None where it has none."""
    size = record.integer("memory_limit_bytes") if record.has("memory_limit_bytes") else 0
    if not 0 <= size < 2**60:
        record.refuse("memory_limit_bytes", "a size in bytes")
    return size or None


def _source(record: Record) -> str:
    contest = f"contest {record.integer('cf_contest_id')}" if record.value.get("cf_contest_id") else ""
    index = f"problem {record.text('cf_index')}" if record.value.get("cf_index") else ""
    return line(", ".join(part for part in (_named(record, "source", SOURCES), contest, index) if part))
