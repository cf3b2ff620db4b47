"""Facts about what is measured: problems, their tests, the programs written for them, and filter decisions."""

from dataclasses import dataclass
from typing import Annotated

from lapledger.ledger.events.base import fact


@fact("problem.added", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemAddedV1:
    """A problem entered the ledger, before its limits of memory and output were recorded."""

    problem_id: Annotated[str, "slug, a dot, and the first 12 hex digits of the package digest"]
    slug: Annotated[str, "short name, as in its folder"]
    name: Annotated[str, "title"]
    source: Annotated[str, "where it comes from, in words; empty when the package does not say"]
    license: Annotated[str, "licence as the package states it; empty when it does not"]
    package_digest: Annotated[str, "SHA-256 over the judging settings and every test's digests"]
    validator_flags: Annotated[str, "flags of the default answer check, for instance `float_tolerance 1e-6`"]
    grading: Annotated[str, "JSON of the test groups' scores; empty for a pass-fail problem"]
    time_limit_ns: Annotated[int | None, "the package's own time limit, nanoseconds"]
    tier: Annotated[str | None, "difficulty, where a user named a field for it"]
    statement_blob: Annotated[str | None, "SHA-256 of the statement"]
    importer: Annotated[str, "what read it, with its version"]


@fact("problem.added", 2, added={"memory_limit_bytes": None, "output_limit_bytes": None})
@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemAdded:
    """A problem entered the ledger. A package whose tests or judging change becomes another problem."""

    problem_id: Annotated[str, "slug, a dot, and the first 12 hex digits of the package digest"]
    slug: Annotated[str, "short name, as in its folder"]
    name: Annotated[str, "title"]
    source: Annotated[str, "where it comes from, as text; empty when the package does not say"]
    license: Annotated[str, "licence as the package states it; empty when it does not"]
    package_digest: Annotated[str, "SHA-256 over the judging settings and every test's digests"]
    validator_flags: Annotated[str, "flags of the default answer check, for instance `float_tolerance 1e-6`"]
    grading: Annotated[str, "JSON of the test groups' scores; empty for a pass-fail problem"]
    time_limit_ns: Annotated[int | None, "the package's own time limit, nanoseconds"]
    tier: Annotated[str | None, "difficulty, where a user named a field for it"]
    statement_blob: Annotated[str | None, "SHA-256 of the statement"]
    importer: Annotated[str, "what read it, with its version"]
    memory_limit_bytes: Annotated[int | None, "the package's own memory limit"] = None
    output_limit_bytes: Annotated[int | None, "the package's own limit of the output"] = None


@fact("test.added", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class TestAddedV1:
    """A test of a problem, with the sizes that test filters use."""

    __test__ = False  # pytest must not collect an event type

    problem_id: Annotated[str, "the problem"]
    test_id: Annotated[str, "problem id, a slash, and the test's path in its package without suffix"]
    ordinal: Annotated[int, "place in the package's order, from 0"]
    group: Annotated[str, "test group: the folder that holds the test, for instance `secret/group1`"]
    original: Annotated[bool, "came with the problem; false when it was generated later"]
    correctness: Annotated[bool, "made to reject wrong programs"]
    optimization: Annotated[bool, "made to spread run times"]
    input_blob: Annotated[str, "SHA-256 of the input"]
    answer_blob: Annotated[str, "SHA-256 of the answer"]
    input_bytes: Annotated[int, "length of the input in bytes"]
    input_chars: Annotated[int, "length of the input in characters"]
    output_bytes: Annotated[int, "length of the answer in bytes"]
    output_chars: Annotated[int, "length of the answer in characters"]


@fact("program.added", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAdded:
    """A program for a problem, by a human or a model, with the label that its source claims."""

    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "problem id, a slash, file stem, a dot, first 12 hex digits of the source's SHA-256"]
    name: Annotated[str, "file name in the package"]
    model: Annotated[str, "`human` or the model's name; estimates are grouped by it"]
    label: Annotated[str, "claimed verdict: the folder's name, for instance `accepted`; empty when unknown"]
    language: Annotated[str, "programming language, for instance `python3`"]
    source_blob: Annotated[str, "SHA-256 of the source"]
    source_bytes: Annotated[int, "length of the source in bytes"]
    rollout_id: Annotated[str | None, "the rollout that sampled it"]


@fact("filter.decided", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class FilterDecided:
    """A filter kept or dropped a test, a program or a problem, and why."""

    problem_id: Annotated[str, "the problem"]
    subject: Annotated[str, "`test`, `program` or `problem`"]
    subject_id: Annotated[str, "id of what was decided on"]
    rule: Annotated[str, "name of the rule, for instance `re-execution` or `duration`"]
    campaign_id: Annotated[str | None, "the campaign whose outcomes decided; null where none did"]
    kept: Annotated[bool, "true when it stays"]
    reason: Annotated[str, "one line"]
    figure: Annotated[float | None, "the figure that decided, where there is one"]
