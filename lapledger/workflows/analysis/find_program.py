"""How a person names a program: its id, the start of its id, or `[PROBLEM/]NAME` with or without the file's ending."""

from typing import Any

from lapledger.ledger.errors import UserError, nearest
from lapledger.ledger.questions.queries import Questions


def find_program(questions: Questions, name: str) -> dict[str, Any]:
    """The program that `name` names; UserError when there is none or more than one."""
    rows = questions.rows(
        "SELECT p.*, q.slug FROM program p JOIN problem q USING (problem_id) ORDER BY program_id",
    )
    for match in (_exact, _by_name, _by_start):
        matches = [row for row in rows if match(row, name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = ", ".join(row["program_id"] for row in matches[:5])
            raise UserError(
                f"{name!r} names {len(matches)} programs: {names}{' ...' if len(matches) > 5 else ''}; name one"
            )
    spellings = [f"{row['slug']}/{row['name'].rsplit('/', 1)[-1].removesuffix('.py')}" for row in rows]
    hint = nearest(name, spellings) or ";"
    raise UserError(f"no program {name!r} at this cut{hint} The view `program` of `lap sql` lists them")


def _exact(row: dict[str, Any], name: str) -> bool:
    return bool(row["program_id"] == name)


def _by_name(row: dict[str, Any], name: str) -> bool:
    stem = row["name"].rsplit("/", 1)[-1].removesuffix(".py")
    spellings = (row["name"], stem, f"{stem}.py")
    return name in {*spellings, *(f"{row['slug']}/{spelling}" for spelling in spellings)}


def _by_start(row: dict[str, Any], name: str) -> bool:
    return bool(row["program_id"].startswith(name))
