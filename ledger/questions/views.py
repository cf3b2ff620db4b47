"""The documented views that questions and `lap sql` read, as data: name, meaning, SQL, and the events they stand on.

Raw tables are called after their event type (`timing.measured` is `timing_measured`) and hold every event at the cut
with its origin: `_stream`, `_partition`, `_admission`, `_row`. A work belongs to one campaign, by its id: where a
view groups or joins by works it names the campaign too, so that a question about one campaign reads little else.
"""

from dataclasses import dataclass

ORIGIN = "_stream, _partition, _admission, _row"


@dataclass(frozen=True, slots=True)
class View:
    """A view over raw tables or other views."""

    name: str
    doc: str
    sql: str
    needs: tuple[str, ...]


def raw_name(event_name: str) -> str:
    """The table name of an event type: its parts joined by an underscore."""
    return event_name.replace(".", "_")


def _first(name: str, event_name: str, key: str, doc: str) -> View:
    """A view of the first admitted event for each key: facts do not change, so repetitions are dropped."""
    table = raw_name(event_name)
    sql = (
        f"SELECT * EXCLUDE ({ORIGIN}) FROM {table} "  # noqa: S608  (fixed names of this module)
        f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {ORIGIN}) = 1"
    )
    return View(name, doc, sql, (event_name,))


_EXECUTION = """
SELECT *, outcome <> 'sandbox_fault' AND nth = 1 AS accepted, outcome <> 'sandbox_fault' AND nth > 1 AS surplus
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY campaign_id, work_id, outcome = 'sandbox_fault' ORDER BY _stream, _partition, _admission, _row) AS nth
  FROM execution_finished
)
"""

_TIMING = """
SELECT t.* EXCLUDE (_stream, _partition, _admission, _row), e.outcome, e.accepted, e.surplus
FROM timing_measured t JOIN execution e USING (campaign_id, attempt_id)
"""

_VERDICT = """
SELECT r.*, p.model, p.label, p.name FROM reward r JOIN program p USING (program_id)
"""

_WORK = """
SELECT r.*, e.attempt_id, e.outcome, e.detail
FROM request r LEFT JOIN (
  SELECT campaign_id, work_id, attempt_id, outcome, detail FROM execution WHERE accepted) e USING (campaign_id, work_id)
"""

_REQUEST = f"""
SELECT * EXCLUDE ({ORIGIN}) FROM execution_requested
QUALIFY row_number() OVER (PARTITION BY campaign_id, work_id ORDER BY {ORIGIN}) = 1
"""  # noqa: S608

VIEWS: tuple[View, ...] = (
    _first("problem", "problem.added", "problem_id", "one row a problem"),
    _first("test", "test.added", "test_id", "one row a test, with its kinds and sizes"),
    _first("program", "program.added", "program_id", "one row a program, with its claimed label"),
    _first(
        "filter",
        "filter.decided",
        "campaign_id, subject_id, rule",
        "filter decisions of each campaign, with their reasons",
    ),
    _first("campaign", "campaign.opened", "campaign_id", "one row a campaign: members, pool, limits, seed"),
    _first("closing", "campaign.closed", "campaign_id", "campaigns that are closed, with their counts"),
    _first("worker", "worker.started", "worker_id, campaign_id", "sandbox workers of each campaign and their start-up"),
    View("request", "one row a work", _REQUEST, ("execution.requested",)),
    View(
        "execution",
        "every finished attempt; `accepted` marks the one that counts, `surplus` the later ones",
        _EXECUTION,
        ("execution.finished",),
    ),
    _first(
        "shared",
        "execution.shared",
        "campaign_id, program_id",
        "programs that are not run, as another one of the same source is: its executions count for both",
    ),
    View("timing", "every visible repetition, with its attempt's outcome", _TIMING, ("timing.measured", "execution")),
    View("work", "every work with its accepted outcome, null while it has none", _WORK, ("request", "execution")),
    _first("criterion", "criterion.declared", "criterion_hash", "declared criteria in canonical form"),
    _first("calibration", "calibration.fitted", "calibration_id", "fitted maps between campaigns"),
    _first("reward", "reward.assigned", "reward_id", "assigned rewards"),
    View("verdict", "rewards with the program's model, label and file name", _VERDICT, ("reward", "program")),
    _first("replay", "replay.completed", "replay_id", "named replays"),
    _first("imported", "results.imported", "import_id", "files of other tools, with what they leave unknown"),
    _first("annotation", "annotation.made", "annotation_id", "what people marked as suspect"),
    _first("epoch", "epoch.opened", "epoch", "producer processes"),
)
BY_NAME = {view.name: view for view in VIEWS}
