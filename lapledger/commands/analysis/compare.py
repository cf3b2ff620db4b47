"""`lap compare`: two models, or two sets of training runs, on the same problems, from stored results alone."""

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.engine_options import engine_options
from lapledger.cli.options import at_option, campaign_option, from_option, json_option, ledger_option, seed_option
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import print_json
from lapledger.render.terminal import TERMINAL
from lapledger.replay.engines import Engine
from lapledger.settings import read_settings
from lapledger.workflows.analysis.tiers import HOW, tiers

TAUS = ("100", "50", "30", "10")


@click.command()
@click.argument("a")
@click.argument("b")
@criterion_options(tau=False)
@click.option(
    "--tau", "taus", multiple=True, metavar="PERCENT", help="p_tau threshold; repeat.  [default: 100, 50, 30, 10]"
)
@click.option("--k", default=1, type=click.IntRange(1), help="k of pass@k.  [default: 1]")
@click.option(
    "--tiers", "tier_source", default="auto", type=click.Choice(HOW), help="Difficulty tiers.  [default: auto]"
)
@click.option("--b-campaign", default=None, metavar="ID", help="Campaign of B.  [default: that of A]")
@click.option(
    "--replicate-campaign", default=None, metavar="ID", help="Campaign that repeated the same programs (A/A baseline)."
)
@from_option
@seed_option("the bootstrap")
@click.option(
    "--resamples", default=10_000, type=click.IntRange(100), metavar="N", help="Bootstrap resamples.  [default: 10000]"
)
@click.option(
    "--adjust",
    default="holm",
    type=click.Choice(["holm", "fdr_bh"]),
    help="Multiple-comparison correction.  [default: holm]",
)
@engine_options
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    a: str,
    b: str,
    criterion_flags: CriterionFlags,
    taus: tuple[str, ...],
    k: int,
    tier_source: str,
    b_campaign: str | None,
    replicate_campaign: str | None,
    source: str | None,
    seed: int,
    resamples: int,
    adjust: str,
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    engine: Engine,
) -> None:
    """Compare A with B: paired differences, relative gains, win rates, tiers, best of N, and a noise baseline.

    A and B are models, patterns that name training runs (`rlvr-*`, `rlvr-{seed}`), or declared runs
    (`reward=collapsed-binary`). Uncertainty over problems and over training runs are separate columns.
    Programs of two campaigns are compared only through a stored calibration that --calibration names.

    \b
    Example:
      lap compare qwen-rlvr qwen-top30 --tau 50 --tau 30
      lap compare 'top30-*' 'rlvr-*' --json
      lap compare model-x model-x --campaign main --b-campaign recheck --calibration affine
    """
    from lapledger.render.comparison_tables import as_json as plain
    from lapledger.render.comparison_tables import show
    from lapledger.workflows.analysis.compare import ComparisonOptions, compare, same_code
    from lapledger.workflows.analysis.comparison_arms import find_arms

    _, criterion = criterion_flags.read()
    settings = ComparisonOptions(tuple(taus) or TAUS, k, seed, resamples, adjust)
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        arms = find_arms(
            questions,
            (a, b),
            (campaign, b_campaign),
            criterion,
            source=source,
            engine=engine,
            criteria=len(settings.taus),
            reporter=TERMINAL,
        )
        of_problem, tiers_used = tiers(questions, arms.a.judged.measurements, tier_source)
        same = same_code(questions, arms, replicate_campaign)
        comparison = compare(arms, settings, of_problem, same, reporter=TERMINAL)
        if as_json:
            print_json(plain(arms, settings, comparison, tiers_used))
        else:
            show(arms, settings, comparison, tiers_used)
