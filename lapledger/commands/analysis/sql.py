"""`lap sql`: a read-only SELECT over the documented views at a cut, without file or network access."""

import click

from lapledger.cli.options import at_option, json_option, ledger_option
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import print_json, print_rows, print_table
from lapledger.settings import read_settings


@click.command()
@click.argument("query", required=False)
@click.option("--views", is_flag=True, help="List the documented views.")
@ledger_option
@at_option
@json_option
def command(query: str | None, views: bool, ledger: str | None, at: str | None, as_json: bool) -> None:
    """Run one SELECT over the documented views.

    \b
    Example:
      lap sql "SELECT outcome, count(*) AS n FROM execution WHERE accepted GROUP BY outcome"
    """
    from lapledger.ledger.questions.views import VIEWS

    if views or query is None:
        print_table(("view", "meaning"), [(view.name, view.doc) for view in VIEWS])
        return
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        answer = questions.query_user(query)
        rows = list(zip(*(column.to_pylist() for column in answer.columns), strict=True))
        if as_json:
            print_json({"cut": str(questions.cut), "columns": answer.column_names, "rows": rows})
        else:
            print_rows(answer.column_names, rows, cut=str(questions.cut))
