"""`lap reward`: assign rewards under a criterion, as events."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import campaign_option, from_option, json_option, ledger_option
from lapledger.cli.service_options import lease_option, log_option, serving
from lapledger.ledger.events import FACTS, RewardAssigned
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.ledger.store.location import Location
from lapledger.render.output import count, print_json, print_message, print_table, print_warnings
from lapledger.render.terminal import TERMINAL
from lapledger.settings import read_settings
from lapledger.workflows.service_runtime import group_name
from lapledger.workflows.session import open_writer

if TYPE_CHECKING:
    from lapledger.consumers.services.derive import RewardOrder
    from lapledger.workflows.logs import Form


@click.command()
@criterion_options(tau=True)
@from_option
@campaign_option
@ledger_option
@click.option("--follow", is_flag=True, help="Continue as problems close, until stopped.")
@lease_option
@log_option
@json_option
def command(
    criterion_flags: CriterionFlags,
    follow: bool,
    ledger: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Assign a reward to every program whose problem is closed. Each reward is an event that names its evidence.

    \b
    Example:
      lap reward --criterion top-30
      lap reward --criterion top-30 --campaign main --follow
    """
    from lapledger.consumers.services.derive import RewardOrder

    target = {name: flags.pop(name) for name in ("campaign", "source")}
    service = {name: flags.pop(name) for name in ("log", "lease_seconds")}
    name, criterion = criterion_flags.read()
    order = RewardOrder(criterion, name, **target)
    location = read_settings(ledger=ledger).location
    if follow:
        _follow(location, order, **service)
    else:
        _once(location, order, as_json=as_json)


def _follow(location: Location, order: "RewardOrder", *, log: "Form", lease_seconds: float) -> None:
    from lapledger.consumers.services.derive import RewardFollower

    with serving(location, "reward", log, lease_seconds) as service:
        group = service.group(
            group_name("rewards", order.criterion.hash, order.campaign or "", order.source or ""), (FACTS,)
        )
        service.derive(group, RewardFollower(service.ledger, service.producer, order, service.context))


def _once(location: Location, order: "RewardOrder", *, as_json: bool) -> None:
    from lapledger.consumers.derive.rewarder import assign

    name, criterion = order.name, order.criterion
    with open_writer(location, "lap reward", TERMINAL) as writer:
        done = assign(
            writer.ledger, writer.producer, criterion, name=name, campaign=order.campaign, source=order.source
        )
    print_message(
        f"{count(len(done.new), 'reward')} assigned under {name} ({criterion.hash[:12]}); {done.held} already stored; "
        f"{count(done.waiting, 'candidate')} open or undecided"
    )
    if criterion.reward == "multitask":
        _report_ungrouped(location, order)
    if as_json:
        rewards = [{"reward_id": r.reward_id, "program_id": r.program_id, "value": r.value} for r in done.new]
        values = [reward.value for reward in done.new]
        summary = dict(zip(SUMMARY, _summary(values), strict=True)) if values else None
        summary_json = {"criterion": criterion.hash, "held": done.held, "waiting": done.waiting, "summary": summary}
        summary_json |= {"histogram": histogram(values), "warnings": done.warnings, "rewards": rewards}
        print_json({"cut": done.cut, **summary_json})
    else:
        _show(done.new, done.cut)
        print_warnings(done.warnings)
        print_message('explain a reward: `lap why PROGRAM`; list all: `lap sql "SELECT * FROM verdict"`')


def _report_ungrouped(location: Location, order: "RewardOrder") -> None:
    """Reports the programs without a group of rollouts: the reward `multitask` alternates by groups."""
    from lapledger.replay.loading import find_campaign
    from lapledger.replay.loading.lookups import Lookups

    with open_questions(location) as questions:
        programs = find_campaign(questions, order.campaign)["programs"]
        alone = int((Lookups(questions).groups(programs) < 0).sum())
    if alone:
        print_message(
            f"{alone} of {len(programs)} programs belong to no group of rollouts; their reward stays undecided"
        )


def _show(rewards: Sequence[RewardAssigned], cut: str) -> None:
    """One row per problem: counts of +1 and -1, and for rewards in between their quantiles and a histogram."""
    values = _by_problem(rewards)
    signed = [(problem, len(v), v.count(1.0), v.count(-1.0)) for problem, v in values.items()]
    if all(abs(reward.value) == 1 for reward in rewards):
        print_table(("problem", "rewards", "+1", "-1"), signed, cut=cut)
        return
    rows = [(*row, *(f"{q:+.3f}" for q in _summary(values[row[0]]))) for row in signed]
    print_table(("problem", "rewards", "+1", "-1", *SUMMARY), rows, cut=cut)
    every = [reward.value for reward in rewards]
    counts = histogram(every)
    rows = [
        (f"{low:+.1f} to {low + 2 / BINS:+.1f}", count, "#" * round(BAR_WIDTH * count / max(counts)))
        for low, count in zip((-1 + 2 * location / BINS for location in range(BINS)), counts, strict=True)
    ]
    print_table(("reward", "programs", ""), rows, title=f"{len(every)} rewards, mean {sum(every) / len(every):+.3f}")


SUMMARY = ("mean", "lowest", "25%", "median", "75%", "highest")
BINS = 10
"""Bins of the histogram, of equal width from -1 to 1; each includes its lower end, the last both."""
BAR_WIDTH = 40


def _summary(values: Sequence[float]) -> list[float]:
    """Mean, lowest, quartiles and highest of rewards; quartiles by linear interpolation."""
    import numpy as np

    return [float(np.mean(values)), *(float(q) for q in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))]


def histogram(values: Sequence[float]) -> list[int]:
    """The number of rewards in [-1, 1] in each bin [BINS]."""
    counts = [0] * BINS
    for value in values:
        counts[min(int((value + 1) * BINS / 2), BINS - 1)] += 1
    return counts


def _by_problem(rewards: Sequence[RewardAssigned]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for reward in rewards:
        values.setdefault(reward.problem_id, []).append(reward.value)
    return dict(sorted(values.items()))
