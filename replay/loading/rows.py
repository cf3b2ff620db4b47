"""The digest of what each program's row consists of: its accepted attempts, their outcomes and their timings' digests.

Computed when a reward or an evidence is asked for, a chunk of problems at a time: a table of estimates needs none.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.store.columns import Wanted
from lapledger.replay.loading.attempts import FINISHED, OUTCOMES, finished_of
from lapledger.replay.loading.members import StoredProblem
from lapledger.replay.loading.sharing import executed_rows
from lapledger.replay.loading.stored import CHUNK, Source
from lapledger.replay.measurements import ProblemMeasurements

DIGESTS = Wanted(FINISHED.name, (*FINISHED.columns, "attempt_id", "timings_digest"), FINISHED.dictionary_columns)
_OUTCOME_NAMES = {int(code): name for name, code in OUTCOMES.items()}


class Rows(Mapping[str, str]):
    """Program id -> digest of its row, of every program of a snapshot."""

    def __init__(self, source: Source, problems: Sequence[ProblemMeasurements]) -> None:
        """Nothing is read yet."""
        self._source = source
        self._names = tuple(m.problem for m in problems)
        self._at = {program: position for position, m in enumerate(problems) for program in m.programs}
        self._known: dict[str, str] = {}

    def __getitem__(self, program: str) -> str:
        """The digest of a program's row; KeyError when it is none of the snapshot's."""
        if program not in self._known:
            start = self._at[program] // CHUNK * CHUNK
            for stored in self._source.problems(self._names[start : start + CHUNK], DIGESTS, None):
                self._known.update(row_digests(stored, self._source.campaign.name))
        return self._known[program]

    def __iter__(self) -> Iterator[str]:
        """The programs, problem by problem."""
        return iter(self._at)

    def __len__(self) -> int:
        """How many programs there are."""
        return len(self._at)


def row_digests(stored: StoredProblem, campaign: str) -> dict[str, str]:
    """The digest of every program of one problem: its id and source, then each test with a result, in order.

    The results are those of the program whose executions count for it.
    """
    finished = finished_of(stored, campaign)
    columns = [stored.finished.strings(name) for name in ("attempt_id", "timings_digest")]
    if finished.kept is not None:
        columns = [column.filter(pa.array(finished.kept)) for column in columns]
    positions = np.flatnonzero(finished.accepted)
    positions = positions[np.argsort(finished.cell[positions])]
    program, test = np.divmod(finished.cell[positions], max(len(stored.tests.ids), 1))
    results: list[list[str]] = [[] for _ in stored.programs.ids]
    attempts, timed = (column.take(positions).to_pylist() for column in columns)
    outcomes = finished.outcome[positions].tolist()
    rows = zip(program.tolist(), test.tolist(), outcomes, attempts, timed, strict=True)
    for p, t, outcome, attempt, digest in rows:
        results[p] += (str(t), _OUTCOME_NAMES[outcome], attempt, digest)
    executed = executed_rows(stored, finished.cell[positions])
    lines = results if executed is None else [results[row] for row in executed.tolist()]
    named = zip(stored.programs.ids, stored.programs.sources.to_pylist(), lines, strict=True)
    return {name: sha256_fields(name, blob or "", *line) for name, blob, line in named}
