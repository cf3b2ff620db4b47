"""What programs define, read from their sources without running them, where a criterion asks for the interface.

A problem states no interface: what all its references define alike is the one that is asked for. Only this module reads
sources; how is the same code that the ledger's own replay uses.
"""

from collections.abc import Sequence

from lapledger.consumers.exports.replayer.facts import Bundle, Problem
from lapledger.replay.judging.interface import kept_of, shared

NOT_LOOKED_AT = -1


class NoSourcesError(ValueError):
    """The bundle holds no sources: it was made for criteria that do not look at them."""


def interfaces(bundle: Bundle, problem: Problem) -> Sequence[int]:
    """Whether each program keeps the interface that the references share: 1, 0, or -1 where nobody can say.

    NoSourcesError where the bundle lacks a source that the ledger knows.
    """
    sources = [_source(bundle, row["source_blob"]) for row in problem.programs]
    known = (text for text, row in zip(sources, problem.programs, strict=True) if row["reference"] and text)
    asked = shared(known)
    if asked is None:
        return [NOT_LOOKED_AT] * len(sources)
    return [kept_of(text, asked) if text else NOT_LOOKED_AT for text in sources]


def _source(bundle: Bundle, digest: str | None) -> str | None:
    if digest is None:
        return None
    data = bundle.blob(digest)
    if data is None:
        raise NoSourcesError(digest)
    return data.decode(errors="replace")
