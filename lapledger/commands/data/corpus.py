"""`lap corpus`: import problem packages, and decide on labels and problems after a run."""

import click

from lapledger.ledger.events import FilterDecided
from lapledger.ledger.questions.queries import Questions
from lapledger.producers.corpus.filters import Execution, duration, relabel
from lapledger.render.output import campaign_option, json_option, ledger_option, print_json, print_table, progress, say
from lapledger.render.terminal import TERMINAL
from lapledger.replay.loading import Snapshot, is_closed, load
from lapledger.replay.measurements import Outcome, ProblemMeasurements, robust_cv
from lapledger.settings import read_settings
from lapledger.workflows.session import writing


@click.group()
def command() -> None:
    """Import problem packages; decide on labels and filters after a run.

    \b
    Example:
      lap corpus import corpus/stonegame path/to/packages
    """


@command.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@ledger_option
@json_option
def import_(paths: tuple[str, ...], ledger: str | None, as_json: bool) -> None:
    """Import packages in the ICPC problem package format; what the ledger holds is not added twice.

    \b
    Example:
      lap corpus import corpus
    """
    from pathlib import Path

    from lapledger.producers.corpus.folders import find_packages
    from lapledger.producers.corpus.importer import import_package
    from lapledger.producers.corpus.package import read_package

    settings = read_settings(ledger=ledger)
    folders = find_packages([Path(path) for path in paths])
    with progress("reading", len(folders)) as bar:
        packages = []
        for folder in folders:  # all are read before anything is written, so that a bad one leaves nothing
            packages.append(read_package(folder))
            bar.advance(bar.task_ids[0])
    rows = []
    with writing(settings.location, "lap corpus import", TERMINAL) as open_:
        questions = Questions(open_.ledger)
        try:
            known = {r["id"] for r in questions.rows(_KNOWN)}
        finally:
            questions.close()
        for package in packages:
            plan = import_package(package, open_.ledger.blobs, known)
            open_.producer.append(plan.events)
            known |= plan.ids
            rows.append((plan.problem_id, plan.problems, plan.tests, plan.programs, len(plan.left_out)))
            for left in plan.left_out:
                say(f"left out {left.path}: {left.reason}")
        open_.admit()
        cut = str(open_.ledger.cut())
    columns = ("problem", "new problems", "new tests", "new programs", "left out")
    if as_json:
        print_json({"cut": cut, "imported": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        print_table(columns, rows, cut=cut)


_KNOWN = """
SELECT problem_id AS id FROM problem UNION ALL SELECT test_id FROM test UNION ALL SELECT program_id FROM program
"""


@command.command("filter")
@campaign_option
@ledger_option
@json_option
def filter_(campaign: str | None, ledger: str | None, as_json: bool) -> None:
    """Decide after a run: labels that re-execution contradicts, and problems that pass the duration filter.

    \b
    Example:
      lap corpus filter --campaign main
    """
    with writing(read_settings(ledger=ledger).location, "lap corpus filter", TERMINAL) as open_:
        questions = Questions(open_.ledger)
        try:
            decided = decisions(load(questions, campaign))
            held = {tuple(row.values()) for row in questions.rows("SELECT campaign_id, subject_id, rule FROM filter")}
        finally:
            questions.close()
        new = [d for d in decided if (d.campaign_id, d.subject_id, d.rule) not in held]
        open_.producer.append(new)
        open_.admit()
        cut = str(open_.ledger.cut())
    columns = ("rule", "subject", "id", "figure", "reason")
    rows = [(d.rule, d.subject, d.subject_id, d.figure, d.reason) for d in decided if not d.kept]
    if as_json:
        dropped = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"cut": cut, "decided": len(decided), "new": len(new), "dropped": dropped})
        return
    say(f"{len(decided)} decisions, {len(new)} new, {len(rows)} drop something")
    print_table(columns, rows, cut=cut)


def decisions(snapshot: Snapshot) -> list[FilterDecided]:
    """What re-execution says of every label, and the duration filter of every problem, from a campaign's outcomes.

    Only problems whose every work has an outcome are decided: a decision is a fact and does not change.
    """
    decided: list[FilterDecided] = []
    for m in filter(is_closed, snapshot.problems):
        relabelled = [relabel(_execution(m, row)) for row in range(len(m.programs))]
        decided += [one for one in relabelled if one is not None]
        tests = int(m.tests.optimization.sum())
        decided.append(duration(m.campaign, m.problem, robust_cv(m), tests=tests))
    return decided


def _execution(m: ProblemMeasurements, row: int) -> Execution:
    outcomes = {test: _WORDS[Outcome(int(code))] for test, code in zip(m.tests.ids, m.outcome[row], strict=True)}
    checks = {test for test, checks in zip(m.tests.ids, m.tests.correctness, strict=True) if checks}
    return Execution(
        campaign_id=m.campaign,
        problem_id=m.problem,
        program_id=m.programs[row],
        label=m.labels[row],
        correctness={test: outcome for test, outcome in outcomes.items() if test in checks},
        other={test: outcome for test, outcome in outcomes.items() if test not in checks},
    )


_WORDS = {outcome: outcome.name.lower() for outcome in Outcome} | {
    Outcome.OK: "accepted",
    Outcome.MISSING: "sandbox_fault",  # no outcome: nothing that speaks for or against the program
}
