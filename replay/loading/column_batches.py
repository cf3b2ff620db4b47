"""The stored rows of one problem, in batches as in segments and tail, as numpy arrays in order of admission.

Arrow stays in here and in `ledger`; what leaves is arrays, or Arrow strings that nobody needs as Python's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.replay.measurements import ABSENT, Bools, Ints


@dataclass(frozen=True, eq=False)
class ColumnBatches:
    """Rows of one type and problem [n], whatever their number of batches."""

    batches: Sequence[pa.RecordBatch]

    @cached_property
    def order(self) -> Ints | None:
        """The order of admission [n]; None where the rows lie in it."""
        admissions = self._joined([batch["_admission"].to_numpy() for batch in self.batches], np.int64)
        if (admissions[1:] >= admissions[:-1]).all():
            return None
        return np.argsort(admissions, kind="stable")

    def ints(self, name: str, absent: int = ABSENT) -> Ints:
        """A column of whole numbers [n], `absent` where null."""
        return self._array([_ints(batch[name], absent) for batch in self.batches], np.int64)

    def flags(self, name: str) -> Bools:
        """A column of flags [n]."""
        parts = [batch[name].to_numpy(zero_copy_only=False) for batch in self.batches]
        return self._array(parts, np.bool_)

    def codes(self, name: str, numbers: Mapping[str, int], unknown: int = -1) -> Ints:
        """The number of each value of a column [n], `unknown` for a value without one."""
        parts = []
        for batch in self.batches:
            column = batch[name]
            known = np.array([numbers.get(value, unknown) for value in column.dictionary.to_pylist()], dtype=np.int64)
            parts.append(known.take(column.indices.to_numpy()))
        return self._array(parts, np.int64)

    def positions(self, name: str, values: pa.Array) -> Ints:
        """The position of each value of a column [n] among many distinct ones, -1 for one that is none of them."""
        parts = []
        for batch in self.batches:
            column = batch[name]
            known = pc.fill_null(pc.index_in(column.dictionary, value_set=values), -1).to_numpy()
            parts.append(known.astype(np.int64).take(column.indices.to_numpy()))
        return self._array(parts, np.int64)

    def strings(self, name: str) -> pa.Array:
        """A column of strings [n]."""
        parts = [batch[name] for batch in self.batches]
        parts = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
        if not parts:
            return pa.array([], pa.string())
        joined = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return joined if self.order is None else joined.take(pa.array(self.order))

    def _array(self, parts: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
        joined = self._joined(parts, kind)
        return joined if self.order is None else joined[self.order]

    def _joined(self, parts: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _ints(column: pa.Array, absent: int) -> Ints:
    numbers: Ints = (pc.fill_null(column, absent) if column.null_count else column).to_numpy()
    return numbers
