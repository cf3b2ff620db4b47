"""Programs that are not run because another one of the same source is: whose executions count for each.

A stated fact decides, never a likeness: `execution.shared` names both programs and their source. It counts where both
are members, both have that source, and the first has no outcome of its own. No execution is read here.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.columns import Wanted
from lapledger.replay.loading.column_batches import Pieces
from lapledger.replay.loading.members import Campaign, Own, Programs
from lapledger.replay.measurements import Ints, ProblemMeasurements

SHARED = Wanted(
    "execution.shared",
    ("campaign_id", "program_id", "executed_program_id", "source_blob"),
    dictionary_columns=("campaign_id", "program_id", "executed_program_id"),
)
_EXECUTED = """
SELECT s.program_id AS program, s.executed_program_id AS executed FROM shared s
JOIN program p ON p.program_id = s.program_id JOIN program e ON e.program_id = s.executed_program_id
JOIN campaign c ON c.campaign_id = s.campaign_id
WHERE s.campaign_id = $campaign AND s.program_id = coalesce($program, s.program_id)
  AND p.source_blob = s.source_blob AND e.source_blob = s.source_blob AND p.problem_id = e.problem_id
  AND list_contains(c.programs, s.executed_program_id)
  AND NOT EXISTS (SELECT 1 FROM execution x
    WHERE x.accepted AND x.campaign_id = $campaign AND x.program_id = s.program_id)
"""
_FALSE = """
SELECT s.campaign_id AS campaign, s.program_id AS program, s.executed_program_id AS executed FROM shared s
LEFT JOIN program p ON p.program_id = s.program_id LEFT JOIN program e ON e.program_id = s.executed_program_id
WHERE p.source_blob IS DISTINCT FROM s.source_blob OR e.source_blob IS DISTINCT FROM s.source_blob ORDER BY ALL
"""


def executed_by(questions: Questions, campaign: str, program: str) -> str:
    """The id of the program whose executions count for `program` in a campaign: its own, or the one it shares with."""
    rows = questions.rows(_EXECUTED, campaign=campaign, program=program)
    return str(rows[0]["executed"]) if rows else program


def borrowed(questions: Questions, campaign: str) -> dict[str, str]:
    """Program -> the one whose executions count for it in a campaign, of all that were not run themselves."""
    return {row["program"]: row["executed"] for row in questions.rows(_EXECUTED, campaign=campaign, program=None)}


def false_shares(questions: Questions) -> list[str]:
    """One line for each program that is told to share executions with one of another source: they count for nobody."""
    return [
        f"{row['program']} in campaign {row['campaign']}: told to share the executions of {row['executed']},"
        " which has another source"
        for row in questions.rows(_FALSE)
    ]


def lent_rows(rows: Pieces, campaign: Campaign, programs: Programs) -> Ints | None:
    """Whose executions may count for each program [P], as its place: its own, or that of a stated fact.

    The first telling of a program counts. None where no fact is told of these programs.
    """
    if not rows.batches:
        return None
    names = pa.array(programs.ids, pa.string())
    own, executed = rows.places("program_id", names), rows.places("executed_program_id", names)
    told = (rows.codes("campaign_id", {campaign.name: 1}, 0) == 1) & (own >= 0)
    places, first = np.unique(own[told], return_index=True)
    if not places.size:
        return None
    lender, stated = executed[told][first], rows.strings("source_blob").filter(pa.array(told)).take(pa.array(first))
    same = lender >= 0
    for row in (places, np.maximum(lender, 0)):
        same &= pc.fill_null(pc.equal(programs.sources.take(pa.array(row)), stated), False).to_numpy(False)
    found = np.arange(len(programs.ids))
    found[places[same]] = lender[same]
    return found


def executed_rows(own: Own, cells: Ints) -> Ints | None:
    """Whose executions count for each program [P], from the cells (program * tests + test) with an outcome [n].

    None where each has its own.
    """
    if own.lent is None or not len(own.tests.ids):
        return None
    ran = np.zeros(len(own.lent), dtype=np.bool_)
    ran[cells // len(own.tests.ids)] = True
    return np.where(ran, np.arange(len(ran)), own.lent)


def lend(m: ProblemMeasurements, rows: Ints | None) -> ProblemMeasurements:
    """The measurements with the runs of the program in place `rows` [P] for each program; as they are for None."""
    if rows is None:
        return m
    return replace(
        m,
        outcome=m.outcome[rows],
        wall_ns=m.wall_ns[rows],
        cpu_ns=m.cpu_ns[rows],
        startup_ns=m.startup_ns[rows],
        limit_ns=m.limit_ns[rows],
        memory_bytes=None if m.memory_bytes is None else m.memory_bytes[rows],
    )
