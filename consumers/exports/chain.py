"""The chain of a ledger at a cut: the digests of all frames of each partition, and the head that follows from them."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, text

from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.proof.heads import RecordedHead
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.heads import first_head, ledger_head, next_head
from lapledger.ledger.streams.base import Partition

_CHAIN = text(
    "SELECT digest FROM frame WHERE stream = :stream AND partition = :partition AND admission <= :last"
    " ORDER BY admission"
)


def partitions() -> Iterator[Partition]:
    """Every stream with each of its partitions."""
    return ((stream, number) for stream, count in PARTITIONS.items() for number in range(count))


def digests(connection: Connection, questions: Questions, stream: str, partition: int) -> Sequence[str]:
    """The digests of a partition's frames up to the questions' cut, in the order of admission."""
    place = {"stream": stream, "partition": partition, "last": questions.cut.at(stream, partition)}
    return connection.execute(_CHAIN, place).scalars().all()


def head_at(connection: Connection, questions: Questions, manifests: Sequence[str]) -> str:
    """The head of the questions' cut with the current chain of manifests, as `lap verify --print-head` prints it."""
    heads = {}
    for stream, partition in partitions():
        head = first_head(questions.ledger.identity, stream, partition)
        chain = digests(connection, questions, stream, partition)
        for digest in chain:
            head = next_head(head, digest)
        heads[stream, partition] = len(chain), head
    return str(RecordedHead(questions.cut, ledger_head(heads, manifests)))
