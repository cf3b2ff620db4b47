"""What programs define, read from their sources without running them, where a criterion requires the interface.

A problem states no interface: what all its references define alike is required. Only this module reads sources; the
rules are the same code that the ledger's own replay uses.
"""

from collections.abc import Sequence

from lapledger.consumers.exports.replayer.facts import Problem
from lapledger.ledger.proof.bundles.verifier.bundle_file import BundleFile
from lapledger.replay.judging.interface import kept_of, shared

UNKNOWN = -1


class NoSourcesError(ValueError):
    """The bundle holds no sources: it was written for criteria that do not need them."""


def interfaces(bundle: BundleFile, problem: Problem) -> Sequence[int]:
    """Whether each program keeps the interface that the references share: 1, 0, or -1 where it is unknown.

    NoSourcesError where the bundle lacks a source that the ledger knows.
    """
    sources = [_source(bundle, row["source_blob"]) for row in problem.programs]
    references = (text for text, row in zip(sources, problem.programs, strict=True) if row["reference"] and text)
    required = shared(references)
    if required is None:
        return [UNKNOWN] * len(sources)
    return [kept_of(text, required) if text else UNKNOWN for text in sources]


def _source(bundle: BundleFile, digest: str | None) -> str | None:
    if digest is None:
        return None
    data = bundle.blob(digest)
    if data is None:
        raise NoSourcesError(digest)
    return data.decode(errors="replace")
