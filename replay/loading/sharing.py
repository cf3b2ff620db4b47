"""Programs that share the executions of another one with the same source: whose executions count for each.

A stated fact decides, never a likeness: `execution.shared` names both programs and their source. It counts where both
are members, both have that source, and the first has no outcome of its own. No execution is read here.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.columns import Wanted
from lapledger.replay.loading.column_batches import ColumnBatches
from lapledger.replay.loading.members import Campaign, Programs, StoredProblem
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
    """The id of the program whose executions count for `program` in a campaign: itself, or the one that it shares."""
    rows = questions.rows(_EXECUTED, campaign=campaign, program=program)
    return str(rows[0]["executed"]) if rows else program


def shared_executions(questions: Questions, campaign: str) -> dict[str, str]:
    """Program -> the one whose executions count for it in a campaign, of all that were not run themselves."""
    return {row["program"]: row["executed"] for row in questions.rows(_EXECUTED, campaign=campaign, program=None)}


def false_shares(questions: Questions) -> list[str]:
    """One line for each stated share between programs of different sources: it counts for nobody."""
    return [
        f"{row['program']} in campaign {row['campaign']}: stated to share the executions of {row['executed']},"
        " which has another source"
        for row in questions.rows(_FALSE)
    ]


def shared_rows(rows: ColumnBatches, campaign: Campaign, programs: Programs) -> Ints | None:
    """Whose executions may count for each program [P], as its position: itself, or that of a stated fact.

    Of several facts on one program the first counts. None where there is no fact on these programs.
    """
    if not rows.batches:
        return None
    names = pa.array(programs.ids, pa.string())
    program, executed = rows.positions("program_id", names), rows.positions("executed_program_id", names)
    stated = (rows.codes("campaign_id", {campaign.name: 1}, 0) == 1) & (program >= 0)
    positions, first = np.unique(program[stated], return_index=True)
    if not positions.size:
        return None
    source, shared = executed[stated][first], rows.strings("source_blob").filter(pa.array(stated)).take(pa.array(first))
    same = source >= 0
    for row in (positions, np.maximum(source, 0)):
        same &= pc.fill_null(pc.equal(programs.sources.take(pa.array(row)), shared), False).to_numpy(False)
    row_of = np.arange(len(programs.ids))
    row_of[positions[same]] = source[same]
    return row_of


def executed_rows(stored: StoredProblem, cells: Ints) -> Ints | None:
    """Whose executions count for each program [P], from the cells (program * tests + test) with an outcome [n].

    None where each has its own.
    """
    if stored.shared is None or not len(stored.tests.ids):
        return None
    ran = np.zeros(len(stored.shared), dtype=np.bool_)
    ran[cells // len(stored.tests.ids)] = True
    return np.where(ran, np.arange(len(ran)), stored.shared)


def reuse_executions(m: ProblemMeasurements, rows: Ints | None) -> ProblemMeasurements:
    """The measurements with the runs of row `rows` [P] for each program; as they are for None."""
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
