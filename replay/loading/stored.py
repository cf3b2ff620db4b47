"""The stored facts of a campaign, problem by problem in chunks: a bound on memory, with the next chunk read ahead.

Nothing is read before it is asked for, and nothing is kept.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import pyarrow as pa

from lapledger.ledger.prefetch import prefetch
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.columns import Columns, Slices, Wanted
from lapledger.replay.loading.column_batches import ColumnBatches
from lapledger.replay.loading.members import PROGRAMS, TESTS, Campaign, StoredProblem, programs_of, tests_of
from lapledger.replay.loading.sharing import SHARED, shared_rows

_ENDED, _MEASURED = (Wanted(name, ("attempt_id",)) for name in ("execution.finished", "timing.measured"))
CHUNK = 16
"""Problems that are read at a time."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a campaign's facts are read from."""

    questions: Questions
    campaign: Campaign

    def problems(self, names: Sequence[str], finished: Wanted, timed: Wanted | None) -> Iterator[StoredProblem]:
        """What is stored of some problems, in their order; without timings where none are wanted.

        Fault when a segment is missing or broken.
        """
        wanted = [PROGRAMS, TESTS, SHARED, finished, *([timed] if timed else [])]
        chunks = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
        with ExitStack() as stack:
            ledger, cut = self.questions.ledger, self.questions.cut
            columns = [stack.enter_context(closing(Columns(ledger, columns, cut))) for columns in wanted]
            reads = stack.enter_context(closing(prefetch([part.of(chunk) for part in columns] for chunk in chunks)))
            for chunk, done in zip(chunks, reads, strict=True):
                yield from (self._stored_problem(problem, done) for problem in chunk)

    def _stored_problem(self, problem: str, read: Sequence[Slices]) -> StoredProblem:
        members, tests, shared, finished, *timed = (ColumnBatches(slices[problem]) for slices in read)
        programs = programs_of(members, self.campaign)
        return StoredProblem(
            problem,
            programs,
            tests_of(tests),
            shared_rows(shared, self.campaign, programs),
            finished,
            timed[0] if timed else ColumnBatches(()),
        )


class Attempts:
    """The ids of a problem's attempts, for the few problems where executions do not settle whose timings are whose."""

    def __init__(self, source: Source) -> None:
        """Nothing is read, and no segment opened, before a problem asks."""
        self._questions, self._stack = source.questions, ExitStack()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the segments."""
        self._stack.close()

    @cached_property
    def _columns(self) -> tuple[Columns, Columns]:
        ledger, cut = self._questions.ledger, self._questions.cut
        ended, timed = (self._stack.enter_context(closing(Columns(ledger, w, cut))) for w in (_ENDED, _MEASURED))
        return ended, timed

    def __call__(self, problem: str) -> tuple[pa.Array, pa.Array]:
        """The attempt of each finished row and of each timing of a problem, in the order of the rows."""
        ended, timed = (
            ColumnBatches(columns.of([problem])[problem]).strings("attempt_id") for columns in self._columns
        )
        return ended, timed
