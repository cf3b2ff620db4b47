"""The stored facts of a campaign, problem by problem in chunks: a bound on memory, with the next chunk read ahead.

Nothing is read before it is asked for, and nothing is kept.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from ledger.ahead import ahead
from ledger.questions import Questions
from ledger.store.columns import Columns, Slices, Wanted
from replay.shell.members import PROGRAMS, TESTS, Campaign, programs_of, tests_of
from replay.shell.pieces import Pieces
from replay.shell.runs import Own

CHUNK = 16
"""Problems that are read at a time."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a campaign's facts are read from."""

    questions: Questions
    campaign: Campaign

    def problems(self, names: Sequence[str], finished: Wanted, timed: Wanted | None) -> Iterator[Own]:
        """What is stored of some problems, in their order; without timings where none are wanted.

        Fault when a segment is missing or broken.
        """
        wanted = [PROGRAMS, TESTS, finished, *([timed] if timed else [])]
        chunks = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
        with ExitStack() as opened:
            ledger, cut = self.questions.ledger, self.questions.cut
            columns = [opened.enter_context(closing(Columns(ledger, one, cut))) for one in wanted]
            reads = opened.enter_context(closing(ahead([one.of(chunk) for one in columns] for chunk in chunks)))
            for chunk, done in zip(chunks, reads, strict=True):
                yield from (self._own(problem, done) for problem in chunk)

    def _own(self, problem: str, read: Sequence[Slices]) -> Own:
        programs, tests, finished, *timed = (Pieces(slices[problem]) for slices in read)
        return Own(
            problem,
            programs_of(programs, self.campaign),
            tests_of(tests),
            finished,
            timed[0] if timed else Pieces(()),
        )
