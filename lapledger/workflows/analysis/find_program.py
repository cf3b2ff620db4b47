"""How a person names a program: its id, the start of its id, or `[PROBLEM/]NAME` with or without the file's ending."""

from typing import Any

from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions


def find_program(questions: Questions, word: str) -> dict[str, Any]:
    """The one program that a word names; UserError when there is none or more than one."""
    rows = questions.rows(
        "SELECT p.*, q.slug FROM program p JOIN problem q USING (problem_id) ORDER BY program_id",
    )
    for match in (_exact, _by_name, _by_start):
        found = [row for row in rows if match(row, word)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(row["program_id"] for row in found[:5])
            raise UserError(
                f"{word!r} names {len(found)} programs: {names}{' ...' if len(found) > 5 else ''}; name one"
            )
    raise UserError(f"no program {word!r} at this cut; the view `program` of `lap sql` lists them")


def _exact(row: dict[str, Any], word: str) -> bool:
    return bool(row["program_id"] == word)


def _by_name(row: dict[str, Any], word: str) -> bool:
    stem = row["name"].rsplit("/", 1)[-1].removesuffix(".py")
    names = (row["name"], stem, f"{stem}.py")
    return word in {*names, *(f"{row['slug']}/{name}" for name in names)}


def _by_start(row: dict[str, Any], word: str) -> bool:
    return bool(row["program_id"].startswith(word))
