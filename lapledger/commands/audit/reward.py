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
from lapledger.render.output import print_json, print_table, say, tell
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
@click.option("--follow", is_flag=True, help="Go on as problems close, until it is stopped.")
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
    """Assign a reward to every program whose problem is closed: each is an event that names all it rests on.

    \b
    Example:
      lap reward --criterion top-30
      lap reward --criterion top-30 --campaign main --follow
    """
    from lapledger.consumers.services.derive import RewardOrder

    asked = {name: flags.pop(name) for name in ("campaign", "source")}
    service = {name: flags.pop(name) for name in ("log", "lease_seconds")}
    name, criterion = criterion_flags.read()
    order = RewardOrder(criterion, name, **asked)
    place = read_settings(ledger=ledger).location
    if follow:
        _follow(place, order, **service)
    else:
        _once(place, order, as_json=as_json)


def _follow(place: Location, order: "RewardOrder", *, log: "Form", lease_seconds: float) -> None:
    from lapledger.consumers.services.derive import RewardFollower

    with serving(place, "reward", log, lease_seconds) as service:
        group = service.group(
            group_name("rewards", order.criterion.hash, order.campaign or "", order.source or ""), (FACTS,)
        )
        service.derive(group, RewardFollower(service.ledger, service.producer, order, service.context))


def _once(place: Location, order: "RewardOrder", *, as_json: bool) -> None:
    from lapledger.consumers.derive.rewarder import assign

    name, criterion = order.name, order.criterion
    with open_writer(place, "lap reward", TERMINAL) as writer:
        done = assign(
            writer.ledger, writer.producer, criterion, name=name, campaign=order.campaign, source=order.source
        )
    say(
        f"{len(done.new)} rewards assigned under {name} ({criterion.hash[:12]}), {done.held} were held already, "
        f"{done.waiting} candidates are open or undecided"
    )
    if criterion.reward == "multitask":
        _tell_ungrouped(place, order)
    if as_json:
        rewards = [{"reward_id": r.reward_id, "program_id": r.program_id, "value": r.value} for r in done.new]
        values = [reward.value for reward in done.new]
        summary = dict(zip(SUMMARY, _summary(values), strict=True)) if values else None
        found = {"criterion": criterion.hash, "held": done.held, "waiting": done.waiting, "summary": summary}
        found |= {"histogram": histogram(values), "warnings": done.warnings, "rewards": rewards}
        print_json({"cut": done.cut, **found})
    else:
        _show(done.new, done.cut)
        tell(done.warnings)
        say('one reward: `lap why PROGRAM`; all of them: `lap sql "SELECT * FROM verdict"`')


def _tell_ungrouped(place: Location, order: "RewardOrder") -> None:
    """Says how many programs no group of rollouts rewards: the reward `multitask` alternates by groups."""
    from lapledger.replay.loading import find_campaign
    from lapledger.replay.loading.lookups import Lookups

    with open_questions(place) as questions:
        programs = find_campaign(questions, order.campaign)["programs"]
        alone = int((Lookups(questions).groups(programs) < 0).sum())
    if alone:
        say(f"{alone} of {len(programs)} programs belong to no group of rollouts: their reward stays undecided")


def _show(rewards: Sequence[RewardAssigned], cut: str) -> None:
    """A row a problem: how many are +1 and -1, and where rewards lie between, their quantiles and a histogram too."""
    values = _by_problem(rewards)
    signed = [(problem, len(v), v.count(1.0), v.count(-1.0)) for problem, v in values.items()]
    if all(abs(reward.value) == 1 for reward in rewards):
        print_table(("problem", "rewards", "+1", "-1"), signed, cut=cut)
        return
    told = [(*row, *(f"{q:+.3f}" for q in _summary(values[row[0]]))) for row in signed]
    print_table(("problem", "rewards", "+1", "-1", *SUMMARY), told, cut=cut)
    every = [reward.value for reward in rewards]
    counts = histogram(every)
    rows = [
        (f"{low:+.1f} to {low + 2 / BINS:+.1f}", count, "#" * round(WIDEST * count / max(counts)))
        for low, count in zip((-1 + 2 * place / BINS for place in range(BINS)), counts, strict=True)
    ]
    print_table(("reward", "programs", ""), rows, title=f"{len(every)} rewards, mean {sum(every) / len(every):+.3f}")


SUMMARY = ("mean", "lowest", "25%", "median", "75%", "highest")
BINS = 10
"""Bins of the histogram, of equal width from -1 to 1; each holds its lower end, the last both."""
WIDEST = 40


def _summary(values: Sequence[float]) -> list[float]:
    """Mean, lowest, quartiles and highest of rewards; quartiles by linear interpolation."""
    import numpy as np

    return [float(np.mean(values)), *(float(q) for q in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))]


def histogram(values: Sequence[float]) -> list[int]:
    """How many rewards in [-1, 1] lie in each bin [BINS]."""
    counts = [0] * BINS
    for value in values:
        counts[min(int((value + 1) * BINS / 2), BINS - 1)] += 1
    return counts


def _by_problem(rewards: Sequence[RewardAssigned]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for reward in rewards:
        values.setdefault(reward.problem_id, []).append(reward.value)
    return dict(sorted(values.items()))
