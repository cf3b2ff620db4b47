"""`lap problems`: problems with their programs, tests and the spread of their durations."""

import math

import click

from lapledger.cli.options import at_option, campaign_option, json_option, ledger_option
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.ledger.questions.queries import Questions
from lapledger.producers.corpus.filters import MINIMUM_ROBUST_CV
from lapledger.render.output import print_json, print_table
from lapledger.settings import read_settings


@click.command()
@campaign_option
@ledger_option
@at_option
@json_option
def command(campaign: str | None, ledger: str | None, at: str | None, as_json: bool) -> None:
    """List problems; after a run also whether each can be timed.

    A problem passes the duration filter when the robust CV of its optimization tests' reference durations, start-up
    subtracted, is at least 0.3.

    \b
    Example:
      lap problems
    """
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        rows = questions.rows(_PROBLEMS)
        spread = _spread(questions, campaign) if questions.rows("SELECT 1 FROM campaign LIMIT 1") else {}
        cut = str(questions.cut)
    listed = [{**row, **spread.get(row["problem_id"], {"robust_cv": None, "timeable": None})} for row in rows]
    if as_json:
        print_json({"cut": cut, "problems": listed})
        return
    columns = ("problem", "programs", "references", "tests", "optimization", "robust CV", "timeable")
    print_table(columns, [tuple(row.values()) for row in listed], cut=cut)


_PROBLEMS = """
SELECT problem_id,
  (SELECT count(*) FROM program p WHERE p.problem_id = q.problem_id) AS programs,
  (SELECT count(*) FROM program p WHERE p.problem_id = q.problem_id AND p.model = 'human' AND p.label = 'accepted')
    AS "references",
  (SELECT count(*) FROM test t WHERE t.problem_id = q.problem_id) AS tests,
  (SELECT count(*) FROM test t WHERE t.problem_id = q.problem_id AND t.optimization) AS optimization_tests
FROM problem q ORDER BY problem_id
"""


def _spread(questions: Questions, campaign: str | None) -> dict[str, dict[str, object]]:
    from lapledger.replay.loading import load
    from lapledger.replay.measurements import robust_cv

    figures = {m.problem: robust_cv(m) for m in load(questions, campaign).problems}
    return {
        problem: {"robust_cv": None if math.isnan(cv) else round(cv, 3), "timeable": cv >= MINIMUM_ROBUST_CV}
        for problem, cv in figures.items()
    }
