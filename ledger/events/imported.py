"""Results of other tools: the events of programs and executions again, with null where a file has no value.

Version 1 of these events is what our own sandbox writes, which knows every column. Version 2 has the same columns, null
where unknown; unknown texts are empty. Nothing here is measured, guessed or derived.
"""

from dataclasses import dataclass
from typing import Annotated

from lapledger.ledger.events.base import CONTROL, fact


@fact("results.imported", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsImported:
    """A file of another tool was read whole: where the facts of a campaign, or of some problems, come from."""

    import_id: Annotated[str, "SHA-256 of the format, the file's digest and the campaign"]
    format: Annotated[str, "for instance `mercury`"]
    tool: Annotated[str, "the tool that wrote it, in words"]
    tool_version: Annotated[str, "its version; empty when the file does not say"]
    file_name: Annotated[str, "name of the file, without its folders"]
    file_digest: Annotated[str, "SHA-256 of the file"]
    file_bytes: Annotated[int, "its length in bytes"]
    original_id: Annotated[str, "where it was found, for instance repository and commit; empty when nobody said"]
    license: Annotated[str, "its licence; empty when nobody said"]
    campaign_id: Annotated[str | None, "the campaign made of it; null for a file of problems alone"]
    model: Annotated[str, "model of its candidates as the user or the file's name says; empty without candidates"]
    records: Annotated[int, "records that it holds"]
    excluded: Annotated[tuple[str, ...], "records, programs or tests that were excluded, each with its reason"]
    unknown: Annotated[tuple[str, ...], "what the format does not say, in words"]
    source_metadata: Annotated[str, "JSON of the file's own metadata: machine, settings, dates"]
    importer: Annotated[str, "what read it, with its version"]


@fact("test.added", 2)
@dataclass(frozen=True, slots=True, kw_only=True)
class TestAddedV2:
    """A test of a problem, whose input or answer may be unknown."""

    __test__ = False  # pytest must not collect an event type

    problem_id: Annotated[str, "the problem"]
    test_id: Annotated[str, "problem id, a slash, and a name"]
    ordinal: Annotated[int, "position in the package's order, from 0"]
    group: Annotated[str, "test group"]
    original: Annotated[bool, "came with the problem; false when it was generated later"]
    correctness: Annotated[bool, "made to reject wrong programs"]
    optimization: Annotated[bool, "made to spread run times"]
    input_blob: Annotated[str | None, "SHA-256 of the input; null when unknown"]
    answer_blob: Annotated[str | None, "SHA-256 of the answer; null when unknown"]
    input_bytes: Annotated[int | None, "length of the input in bytes; null when unknown"]
    input_chars: Annotated[int | None, "length of the input in characters; null when unknown"]
    output_bytes: Annotated[int | None, "length of the answer in bytes; null when unknown"]
    output_chars: Annotated[int | None, "length of the answer in characters; null when unknown"]


@fact("test.added", 3, added={"validator_flags": "", "arguments": []})
@dataclass(frozen=True, slots=True, kw_only=True)
class TestAdded:
    """A test of a problem, with the sizes that test filters use, and what its package sets for this test alone."""

    __test__ = False  # pytest must not collect an event type

    problem_id: Annotated[str, "the problem"]
    test_id: Annotated[str, "problem id, a slash, and a name"]
    ordinal: Annotated[int, "position in the package's order, from 0"]
    group: Annotated[str, "test group"]
    original: Annotated[bool, "came with the problem; false when it was generated later"]
    correctness: Annotated[bool, "made to reject wrong programs"]
    optimization: Annotated[bool, "made to spread run times"]
    input_blob: Annotated[str | None, "SHA-256 of the input; null when unknown"]
    answer_blob: Annotated[str | None, "SHA-256 of the answer; null when unknown"]
    input_bytes: Annotated[int | None, "length of the input in bytes; null when unknown"]
    input_chars: Annotated[int | None, "length of the input in characters; null when unknown"]
    output_bytes: Annotated[int | None, "length of the answer in bytes; null when unknown"]
    output_chars: Annotated[int | None, "length of the answer in characters; null when unknown"]
    validator_flags: Annotated[str, "flags of the answer check for this test; empty: those of its problem"] = ""
    arguments: Annotated[tuple[str, ...], "command-line arguments of the program"] = ()


@fact("program.added", 2)
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAddedV2:
    """A program for a problem, whose source may be unknown: of some references only durations are published."""

    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "problem id, a slash, a name, and where the source is known a dot and 12 hex digits"]
    name: Annotated[str, "name of the program"]
    model: Annotated[str, "`human` or the model's name; estimates are grouped by it"]
    label: Annotated[str, "claimed verdict; empty when unknown"]
    language: Annotated[str, "programming language; empty when unknown"]
    source_blob: Annotated[str | None, "SHA-256 of the source; null when unknown"]
    source_bytes: Annotated[int | None, "length of the source in bytes; null when unknown"]
    rollout_id: Annotated[str | None, "the rollout that sampled it"]


@fact("campaign.opened", 2, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOpenedV2:
    """Executions that another tool ran together, with what its file records of how."""

    campaign_id: Annotated[str, "the user's name for it, or the format, a word, and 12 hex digits of the file's digest"]
    plan_digest: Annotated[str, "SHA-256 of the format and the file's digest"]
    service: Annotated[str, "worker class: only timings of one class are compared"]
    problems: Annotated[tuple[str, ...], "problem ids"]
    programs: Annotated[tuple[str, ...], "program ids of all members"]
    references: Annotated[tuple[str, ...], "program ids of the frozen reference pool"]
    reference_rule: Annotated[str, "how the pool was chosen"]
    shuffle_seed: Annotated[int | None, "seed of the order; null when unknown"]
    hard_limit_ns: Annotated[int | None, "wall time at which a run is killed; null when unknown"]
    memory_bytes: Annotated[int | None, "address space of one process; null when unknown"]
    output_bytes: Annotated[int | None, "largest output; null when unknown"]
    process_limit: Annotated[int | None, "most processes and threads at once; null when unknown"]
    repetitions: Annotated[int | None, "timed runs per work; null when unknown or differing"]
    warmups: Annotated[int | None, "warm-up runs before them; null when unknown or differing"]
    works: Annotated[int, "number of works with a verdict"]


@fact("timing.measured", 2, added={"instructions": None})
@dataclass(frozen=True, slots=True, kw_only=True)
class TimingMeasuredV2:
    """One repetition of one attempt, unaveraged, as another tool tells it; at least one measure is known."""

    work_id: Annotated[str, "the work"]
    attempt_id: Annotated[str, "the attempt (UUIDv8 of what it stands for)"]
    campaign_id: Annotated[str, "the campaign"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    test_id: Annotated[str, "the test"]
    block: Annotated[int, "repetition block"]
    repetition: Annotated[int, "repetition in the block, from 0, warm-ups included"]
    warmup: Annotated[bool, "true for a warm-up"]
    wall_ns: Annotated[int | None, "wall time as the tool took it; null when unknown"]
    user_ns: Annotated[int | None, "processor time in user mode; null when unknown"]
    system_ns: Annotated[int | None, "processor time in system mode; null when unknown"]
    peak_memory_bytes: Annotated[int | None, "largest resident size; null when unknown"]
    voluntary_switches: Annotated[int | None, "context switches the program asked for; null when unknown"]
    forced_switches: Annotated[int | None, "context switches forced on it; null when unknown"]
    judged_limit_ns: Annotated[int | None, "time limit that decides the outcome; null when unknown"]
    hard_limit_ns: Annotated[int | None, "wall time at which it would be killed; null when unknown"]
    cut: Annotated[str, "why it was cut short: empty, `wall`, `cpu`, `output` or `memory`"]
    position: Annotated[int | None, "position in the shuffled order; null when unknown"]
    offset_ns: Annotated[int | None, "monotonic time since the worker started; null when unknown"]
    core: Annotated[int | None, "core it was bound to; null when unknown, or when it was free to move"]
    slot: Annotated[int | None, "worker slot, from 0; null when unknown"]
    neighbours: Annotated[int | None, "other slots that were busy when it started; null when unknown"]
    startup_ns: Annotated[int | None, "the worker's start-up baseline; null when unknown"]
    interpreter: Annotated[str, "SHA-256 of the interpreter's binary; empty when unknown"]
    isolation: Annotated[str, "isolation level of this run; empty when unknown"]
    host: Annotated[str, "fingerprint of the machine; empty when unknown"]
    instructions: Annotated[int | None, "processor instructions that it took; null when they were not counted"]


@fact("execution.finished", 2)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFinishedV2:
    """An attempt ended, as another tool tells it."""

    work_id: Annotated[str, "the work"]
    attempt_id: Annotated[str, "the attempt (UUIDv8 of what it stands for)"]
    campaign_id: Annotated[str, "the campaign"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    test_id: Annotated[str, "the test"]
    block: Annotated[int, "repetition block"]
    outcome: Annotated[
        str,
        "as in version 1, or `failed` where the tool does not say how; `sandbox_fault` where its own runner failed",
    ]
    detail: Annotated[str, "one line of what the tool says"]
    exit_code: Annotated[int | None, "exit code, where it is known"]
    signal: Annotated[int | None, "signal that ended it"]
    output_digest: Annotated[str | None, "SHA-256 of what it wrote"]
    output_bytes: Annotated[int | None, "bytes that it wrote; null when unknown"]
    timings: Annotated[int, "number of its timing events"]
    timings_digest: Annotated[str, "digest of its timing events in order of repetition"]
    worker_id: Annotated[str, "the worker; empty when unknown"]
    isolation: Annotated[str, "isolation level; empty when unknown"]
    finished_at: Annotated[str, "label: a time as the tool writes it; empty when unknown"]
