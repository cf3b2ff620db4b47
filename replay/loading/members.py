"""The programs and tests of one problem that a campaign names, in the one order that every reader of it shares.

Programs are ordered by id, tests by ordinal and id; of several events of an id the first counts. No
execution is read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.store.columns import Wanted
from lapledger.replay.loading.column_batches import ColumnBatches
from lapledger.replay.measurements import Bools, Ints, Tests

PROGRAMS = Wanted(
    "program.added", ("program_id", "model", "label", "source_blob"), dictionary_columns=("model", "label")
)
_DIGITS = 15  # hex digits that fit a number of 64 bits with a sign
_SIZES = ("input_bytes", "input_chars", "output_bytes", "output_chars")
_KINDS = ("original", "correctness", "optimization")
TESTS = Wanted("test.added", ("test_id", "ordinal", *_KINDS, *_SIZES))


@dataclass(frozen=True, slots=True, eq=False)
class Campaign:
    """One campaign as it was opened, with its members as sets."""

    row: Mapping[str, Any]
    programs: frozenset[str]
    references: frozenset[str]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Campaign":
        """The campaign of a row of the view `campaign`."""
        return cls(row, frozenset(row["programs"]), frozenset(row["references"]))

    @property
    def name(self) -> str:
        """Its id."""
        return str(self.row["campaign_id"])


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The member programs of one problem [P], in order of their ids."""

    ids: tuple[str, ...]
    models: tuple[str, ...]
    labels: tuple[str, ...]
    sources: pa.Array  # SHA-256; null where unknown

    @property
    def duplicate(self) -> Ints:
        """Numbers that are equal where the sources are [P]; an unknown source is nobody's duplicate."""
        if not self.sources.null_count and len(self.ids):
            return _numbers(self.sources)
        digests = (
            sha256_fields("unknown source", name) if blob is None else blob
            for name, blob in zip(self.ids, self.sources.to_pylist(), strict=True)
        )
        return np.array([int(digest[:_DIGITS], 16) for digest in digests], dtype=np.int64)

    def among(self, members: frozenset[str]) -> Bools:
        """Whether each is one of some members [P]."""
        return np.array([name in members for name in self.ids], dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class StoredProblem:
    """What is stored of one problem."""

    problem: str
    programs: Programs
    tests: Tests
    shared: Ints | None
    """Whose executions may count for each program [P]; None where no program shares another's."""
    finished: ColumnBatches
    timed: ColumnBatches


def programs_of(rows: ColumnBatches, campaign: Campaign) -> Programs:
    """The campaign's programs among the stored ones of a problem."""
    names = rows.strings("program_id").to_pylist()
    if campaign.programs.issuperset(names):
        first = _first(names)
    else:
        first = _first([name if name in campaign.programs else None for name in names])
    ids = tuple(sorted(first))
    positions = [first[name] for name in ids]
    models, labels = (rows.strings(name).to_pylist() for name in ("model", "label"))
    sources = rows.strings("source_blob").take(pa.array(np.array(positions, dtype=np.int64)))
    return Programs(ids, tuple(map(models.__getitem__, positions)), tuple(map(labels.__getitem__, positions)), sources)


def _numbers(digests: pa.Array) -> Ints:
    """The first digits of digests as whole numbers [n]."""
    octets = pc.binary_slice(digests.cast(pa.binary()), 0, _DIGITS)
    digits = np.frombuffer(octets.buffers()[2], np.uint8, _DIGITS * len(digests)).reshape(-1, _DIGITS)
    values = np.where(digits >= ord("a"), digits - (ord("a") - 10), digits - ord("0"))
    numbers: Ints = values.astype(np.int64) @ (16 ** np.arange(_DIGITS - 1, -1, -1, dtype=np.int64))
    return numbers


def tests_of(rows: ColumnBatches) -> Tests:
    """All tests of a problem."""
    ids, ordinals = rows.strings("test_id").to_pylist(), rows.ints("ordinal").tolist()
    first = _first(ids)
    ordered = sorted(first, key=lambda name: (ordinals[first[name]], name))
    positions = np.array([first[name] for name in ordered], dtype=np.int64)
    columns: dict[str, Any] = {name: rows.flags(name)[positions] for name in _KINDS}
    columns |= {name: rows.ints(name)[positions] for name in _SIZES}
    return Tests(ids=tuple(ordered), **columns)


def _first(names: list[str | None]) -> dict[str, int]:
    """Where each name comes first."""
    backwards = zip(reversed(names), range(len(names) - 1, -1, -1), strict=True)
    return {name: position for name, position in backwards if name is not None}
