"""The difficulty tier of each problem, read from the ledger: the field it came with, or its references' sources."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lapledger.ledger.errors import UserError
from lapledger.replay.measurements import ProblemMeasurements, correctness_of

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions

HOW = ("auto", "stored", "tokens", "none")


def tiers(questions: "Questions", problems: Sequence[ProblemMeasurements], how: str) -> tuple[dict[str, str], str]:
    """(problem -> tier, what they follow in words).

    `stored` is the tier that a problem came with, `tokens` terciles of the median token count of its correct
    references, `auto` the first of these that every problem has, else none. UserError or ReplayError where the one
    asked for is not there.
    """
    from lapledger.replay.estimates import by_field, by_terciles

    if how == "none" or not problems:
        return {}, "no tiers"
    stored = _stored(questions, problems)
    if how == "stored" or (how == "auto" and all(stored.values())):
        return by_field(stored), "tiers as the problems came with"
    tokens = _tokens(questions, problems, must=how == "tokens")
    if how == "auto" and not all(tokens.values()):
        return {}, "no tiers: a problem has no correct reference whose source is stored"
    return by_terciles(tokens), "tiers: terciles of the references' median token count"


def _stored(questions: "Questions", problems: Sequence[ProblemMeasurements]) -> dict[str, str | None]:
    known = {row["problem_id"]: row["tier"] for row in questions.rows("SELECT problem_id, tier FROM problem")}
    return {m.problem: known.get(m.problem) for m in problems}


def _tokens(questions: "Questions", problems: Sequence[ProblemMeasurements], *, must: bool) -> dict[str, list[int]]:
    """The token counts of each problem's references that are correct by re-execution."""
    from lapledger.replay.estimates import token_count

    sources = {
        row["program_id"]: row["source_blob"]
        for row in questions.rows("SELECT program_id, source_blob FROM program WHERE source_blob IS NOT NULL")
    }
    blobs = questions.ledger.blobs
    tokens_by_problem: dict[str, list[int]] = {}
    for m in problems:
        digests = [sources[name] for name in _correct(m) if name in sources]
        there = [digest for digest in digests if blobs.has(digest)]
        if must and len(there) < len(digests):
            raise UserError(f"--tiers tokens: sources of {m.problem} are not in the ledger; use --tiers none")
        tokens_by_problem[m.problem] = [token_count(blobs.get(digest).decode(errors="replace")) for digest in there]
    return tokens_by_problem


def _correct(m: ProblemMeasurements) -> list[str]:
    """The references that are correct by re-execution."""
    from lapledger.replay.judging.gates import Status, judge

    verdicts = judge(m, correctness_of(m))
    return [m.programs[row] for row in ((verdicts.c == Status.PASS) & m.reference).nonzero()[0]]
