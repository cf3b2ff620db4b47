"""One read of a ledger: opens it, asks at one cut, closes it again."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.location import LedgerPath
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.ledger.store.reader import check_cut
from lapledger.ledger.store.sql.engine import reading


@contextmanager
def open_questions(location: LedgerPath, at: str | None = None) -> Iterator[Questions]:
    """Questions to the ledger at a cut, by default at everything admitted; UserError for a cut ahead of the ledger."""
    with closing(open_ledger(location)) as ledger:
        cut = ledger.cut() if at is None else Cut.parse(at)
        with reading(ledger.engine) as connection:
            check_cut(connection, cut)
        with closing(Questions(ledger, cut)) as questions:
            yield questions
