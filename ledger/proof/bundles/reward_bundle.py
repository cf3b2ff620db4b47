"""The bundle of one reward: the frames and blobs behind it, and its evidence. `verifier.reward` checks it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lapledger.ledger.atomic_write import finite
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import EVENTS
from lapledger.ledger.proof.bundles.bundle_writer import Contents, Program, WrittenBundle, as_json, write_bundle
from lapledger.ledger.proof.bundles.frame_reader import FrameAdmissions
from lapledger.ledger.store.open_ledger import Ledger, cut_now
from lapledger.ledger.store.sql.engine import reading


@dataclass(frozen=True, slots=True)
class Evidence:
    """The values behind a reward's evidence digest, from which it is recomputed.

    `tests` hold [id, original, correctness, optimization]; `programs` [id, source's digest, then for each test its
    number, the outcome, the attempt and the digest of its timings], the pool first, the rewarded one last.
    """

    problem: str
    tests: Sequence[Sequence[Any]]
    programs: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RewardDependencies:
    """What one reward depends on: the admissions of its frames, its blobs, its evidence and its trace.

    `evidence` is None where this release cannot recompute the digest in the reward.
    """

    reward: str
    frames: FrameAdmissions
    blobs: Collection[str]
    evidence: Evidence | None
    trace: Mapping[str, Any]


def write_reward_bundle(path: Path, ledger: Ledger, dependencies: RewardDependencies) -> WrittenBundle:
    """Writes the bundle of a reward; Fault when a frame or a blob is missing or altered.

    UserError when the evidence is not known, without which a bundle proves nothing, or the file cannot be written.
    """
    if dependencies.evidence is None:
        raise UserError(
            f"this release cannot recompute the evidence of the reward {dependencies.reward}; write its bundle with"
            " the release that assigned it"
        )
    contents = Contents(
        about={"reward": dependencies.reward, "evidence": asdict(dependencies.evidence)},
        parts=_parts(ledger, dependencies),
        frames=dependencies.frames,
        program=Program("lapbundle.verifier.reward"),
    )
    with reading(ledger.engine) as connection:
        return write_bundle(path, ledger, connection, cut=cut_now(connection), contents=contents)


_SHOWN = {
    "reward": "reward.assigned",
    "criterion": "criterion.declared",
    "calibration": "calibration.fitted",
    "program": "program.added",
}
"""The parts of trace.json, each the columns of its event that every version has: the verifier holds all of them."""


def _shown(trace: Mapping[str, Any]) -> dict[str, Any]:
    columns = {kind: _shared_columns(kind) for kind in _SHOWN.values()}
    return {
        part: None if trace[part] is None else {name: trace[part][name] for name in columns[kind]}
        for part, kind in _SHOWN.items()
    }


def _shared_columns(kind: str) -> list[str]:
    versions = [set(declared.schema.names) for (name, _), declared in EVENTS.items() if name == kind]
    return sorted(set.intersection(*versions))


def _parts(ledger: Ledger, dependencies: RewardDependencies) -> Iterator[tuple[str, bytes]]:
    yield "trace.json", as_json(finite(_shown(dependencies.trace)))
    for digest in sorted(dependencies.blobs):
        yield f"blobs/{digest}", ledger.blobs.get(digest)
