"""What few criteria need: sources, for interfaces, groups of rollouts, and the limits of problems.

Nothing is read before a criterion asks for it. No verdict is made here.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.judging.interface import kept_of, shared
from lapledger.replay.measurements import Bytes, Ints, ProblemMeasurements
from lapledger.replay.package_limits import NO_LIMITS, PackageLimits

NOT_LOOKED_AT = -1


class Lookups:
    """What a ledger holds of programs and problems at the cut of some questions."""

    def __init__(self, questions: Questions) -> None:
        """Nothing is read yet."""
        self._questions = questions

    @cached_property
    def _blobs(self) -> Mapping[str, str]:
        """Program id -> SHA-256 of its source, where it is known."""
        rows = self._questions.rows("SELECT program_id, source_blob FROM program WHERE source_blob IS NOT NULL")
        return {row["program_id"]: row["source_blob"] for row in rows}

    @cached_property
    def _groups(self) -> Mapping[str, int]:
        """Program id -> number of its group of rollouts; programs of no group are absent."""
        rows = self._questions.rows(_GROUPS)
        return {row["program_id"]: row["ordinal"] + _turn(row["problem_id"]) for row in rows}

    @cached_property
    def _limits(self) -> Mapping[str, PackageLimits]:
        rows = self._questions.rows("SELECT problem_id, time_limit_ns, memory_limit_bytes FROM problem")
        return {row["problem_id"]: PackageLimits(row["time_limit_ns"], row["memory_limit_bytes"]) for row in rows}

    def limits(self, problem: str) -> PackageLimits:
        """The limits that the package of a problem states."""
        return self._limits.get(problem, NO_LIMITS)

    def groups(self, programs: Iterable[str]) -> Ints:
        """The number of each program's group of rollouts [P]; -1 for a program of no group.

        The groups of one problem in one training run are numbered in their order of admission, from 0 or 1 by the
        problem: what alternates by these numbers does so within a problem and between problems, and stays permanently.
        """
        return np.array([self._groups.get(program, -1) for program in programs], dtype=np.int64)

    def interfaces(self, m: ProblemMeasurements) -> Bytes:
        """Whether each program keeps the interface that the references of its problem share [P].

        1 or 0; -1 where a source is unknown or cannot be read, and for all when that is so of every reference. A
        problem whose references share nothing asks for nothing. Fault when a blob is missing.
        """
        sources = [self._source(program) for program in m.programs]
        interface = shared(source for source, member in zip(sources, m.reference, strict=True) if member and source)
        if interface is None:
            return np.full(len(sources), NOT_LOOKED_AT, dtype=np.int8)
        return np.array([kept_of(source, interface) if source else NOT_LOOKED_AT for source in sources], dtype=np.int8)

    def _source(self, program: str) -> str | None:
        blob = self._blobs.get(program)
        return None if blob is None else self._questions.ledger.blobs.get(blob).decode(errors="replace")


def _turn(problem: str) -> int:
    """Whether a problem's first group is numbered 0 or 1: half of the problems each, whatever their order."""
    return int(sha256_fields("turn", problem)[:8], 16) % 2


_GROUPS = """
WITH opened AS (
  SELECT group_id, training_id, problem_id, _admission, _row FROM group_opened
  QUALIFY row_number() OVER (PARTITION BY group_id ORDER BY _stream, _partition, _admission, _row) = 1),
sampled AS (
  SELECT rollout_id, group_id FROM rollout_sampled
  QUALIFY row_number() OVER (PARTITION BY rollout_id ORDER BY _stream, _partition, _admission, _row) = 1)
SELECT p.program_id, o.problem_id, o.ordinal
FROM program p JOIN sampled s ON s.rollout_id = p.rollout_id JOIN (
  SELECT *, row_number() OVER (PARTITION BY training_id, problem_id ORDER BY _admission, _row) - 1 AS ordinal
  FROM opened) o USING (group_id)
"""
"""All groups of one problem lie in one partition, so that their order of admission is one for every cut."""
