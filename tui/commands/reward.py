"""`lap reward`: assign rewards under a criterion, as events."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ledger.events import FACTS, RewardAssigned
from ledger.store.location import Location
from tui.criteria import criterion_options, read_criterion
from tui.output import campaign_option, json_option, ledger_option, print_json, print_table, say
from tui.services import group_name, lease_option, log_option, serving
from tui.session import writing
from tui.settings import read_settings

if TYPE_CHECKING:
    from consumers.services.deriving import RewardOrder
    from tui.logs import Form


@click.command()
@criterion_options
@click.option("--tau", default=None, metavar="PERCENT", help="p_tau.  [default: the criterion's]")
@click.option("--from", "source", default=None, metavar="ID", help="Campaign that the calibration comes from.")
@campaign_option
@ledger_option
@click.option("--follow", is_flag=True, help="Go on as problems close, until it is stopped.")
@lease_option
@log_option
@json_option
def command(
    word: str | None,
    tau: str | None,
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
    from consumers.services.deriving import RewardOrder

    asked = {name: flags.pop(name) for name in ("campaign", "source")}
    service = {name: flags.pop(name) for name in ("log", "lease_seconds")}
    name, criterion = read_criterion(word, {**flags, "tau": tau})
    order = RewardOrder(criterion, name, **asked)
    place = read_settings(ledger=ledger).location
    if follow:
        _follow(place, order, **service)
    else:
        _once(place, order, as_json=as_json)


def _follow(place: Location, order: "RewardOrder", *, log: "Form", lease_seconds: float) -> None:
    from consumers.services.deriving import RewardFollower

    with serving(place, "reward", log, lease_seconds) as service:
        group = service.group(
            group_name("rewards", order.criterion.hash, order.campaign or "", order.source or ""), (FACTS,)
        )
        service.derive(group, RewardFollower(service.ledger, service.producer, order, service.edge))


def _once(place: Location, order: "RewardOrder", *, as_json: bool) -> None:
    from consumers.rewarder import assign

    name, criterion = order.name, order.criterion
    with writing(place, "lap reward") as open_:
        done = assign(open_.ledger, open_.producer, criterion, name=name, campaign=order.campaign, source=order.source)
    say(
        f"{len(done.new)} rewards assigned under {name} ({criterion.hash[:12]}), {done.held} were held already, "
        f"{done.waiting} candidates are open or undecided"
    )
    if as_json:
        rewards = [{"reward_id": r.reward_id, "program_id": r.program_id, "value": r.value} for r in done.new]
        found = {"criterion": criterion.hash, "held": done.held, "waiting": done.waiting, "rewards": rewards}
        print_json({"cut": done.cut, **found})
    else:
        print_table(("problem", "rewards", "+1", "-1"), _by_problem(done.new), cut=done.cut)
        say('one reward: `lap why PROGRAM`; all of them: `lap sql "SELECT * FROM verdict"`')


def _by_problem(rewards: Sequence[RewardAssigned]) -> list[tuple[str, int, int, int]]:
    values: dict[str, list[float]] = {}
    for reward in rewards:
        values.setdefault(reward.problem_id, []).append(reward.value)
    return [(problem, len(v), v.count(1.0), v.count(-1.0)) for problem, v in sorted(values.items())]
