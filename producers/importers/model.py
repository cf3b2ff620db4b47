"""What a reader makes of a result file: problems, tests, programs and their runs, with all that is unknown excluded.

Plain frozen values, the same for every format. Ids and events are made of them elsewhere.
"""

import re
from dataclasses import dataclass

from lapledger.ledger.codec.canonical import blob_digest, sha256_fields
from lapledger.producers.importers.files import SourceFile

HUMAN = "human"
ACCEPTED = "accepted"
FAILED = "failed"
"""How a run ended that failed where the file does not say how."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """One measured run; None is unknown."""

    wall_ns: int | None = None
    warmup: bool = False
    peak_memory_bytes: int | None = None
    instructions: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How a program did on a test: the outcome and what was measured, nothing where the file is silent."""

    test: str
    outcome: str
    detail: str = ""
    repetitions: tuple[Repetition, ...] = ()
    finished_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTest:
    """A test, or all tests of a problem together, whose texts the file does not hold."""

    name: str = "all"
    correctness: bool = True
    optimization: bool = True


SINGLE_TEST = ResultTest()
"""The test that stands for all tests of a problem, where a file names no single one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultProgram:
    """A program with its runs; `source` is None where only its durations are known."""

    name: str
    model: str
    label: str
    source: str | None
    language: str
    reference: bool
    runs: tuple[Run, ...]

    def id_in(self, problem: str) -> str:
        """Problem id, a slash, the name, and where the source is known a dot and 12 hex digits of its SHA-256."""
        return f"{problem}/{self.name}" + ("" if self.source is None else f".{blob_digest(self.source.encode())[:12]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultProblem:
    """A problem by the tool's own id; what the file does not say is empty or None."""

    original: str
    name: str = ""
    origin: str = ""
    tier: str | None = None
    statement: str | None = None
    tests: tuple[ResultTest, ...] = (SINGLE_TEST,)
    programs: tuple[ResultProgram, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A whole file.

    `called` is the word that names its campaign. `figures` are what the file lets one compute at once, by name, to be
    held beside the tool's own.
    """

    format: str
    tool: str
    tool_version: str = ""
    file: SourceFile
    model: str
    called: str
    service: str
    host: str = ""
    reference_rule: str
    problems: tuple[ResultProblem, ...]
    excluded: tuple[str, ...] = ()
    unknown: tuple[str, ...]
    source_metadata: dict[str, object]
    figures: dict[str, float | str | None]
    reading: int = 1  # which version of the reader: another one may tell other facts of the same file

    @property
    def importer(self) -> str:
        """What read it, with the version of the reading."""
        return f"{self.format} {self.reading}"

    def problem_digest(self, problem: ResultProblem) -> str:
        """SHA-256 of the format and the tool's own id: the file does not hold the tests that would tell more."""
        return sha256_fields("problem of", self.format, problem.original)

    def slug(self, problem: ResultProblem) -> str:
        """The tool's id as a word."""
        return identifier_part(problem.original, 100)

    def problem_id(self, problem: ResultProblem) -> str:
        """The slug, a dot, and the first 12 hex digits of the digest."""
        return f"{self.slug(problem)}.{self.problem_digest(problem)[:12]}"


def identifier_part(text: str, longest: int = 40) -> str:
    """A text as part of an id: letters, digits, dots, dashes and underscores; `x` when none is left."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:longest].rstrip("-._") or "x"


def model_of(file_name: str) -> str:
    """The model as a file's name tells it: without its suffix and what tools add to it."""
    stem = re.sub(r"\.jsonl?$", "", file_name)
    return re.sub(r"(_evalperf_results|_eval_all|_eval_new|_eval|_results)$", "", stem) or stem


def line(text: str, longest: int = 200) -> str:
    """A text as one printable line, no longer than that."""
    clean = "".join(c if c.isprintable() else " " for c in text[: 4 * longest])
    return " ".join(clean.split())[:longest]
