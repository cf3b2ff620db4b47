"""What every export asks: a criterion put to one campaign, at one cut, perhaps through a calibration."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lapledger.cli.criterion_options import criterion_options, read_criterion
from lapledger.render.output import at_option, campaign_option, from_option, json_option, ledger_option

if TYPE_CHECKING:
    from lapledger.consumers.exports.judged_export import ExportRequest

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
FOLDER = click.argument("path", type=click.Path(path_type=Path), metavar="DIR")


def question_options(function: F) -> F:
    """Adds what every export asks: criterion, tau, calibration, campaign, ledger, cut and --json."""
    options = (
        criterion_options,
        click.option("--tau", default=None, metavar="PERCENT", help="p_tau.  [default: the criterion's]"),
        from_option,
        campaign_option,
        ledger_option,
        at_option,
        json_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


def request_of(flags: Mapping[str, Any]) -> "ExportRequest":
    """The question that the flags state; UserError for a criterion that is none."""
    from lapledger.consumers.exports.judged_export import ExportRequest

    plain = ("word", "source", "campaign", "ledger", "at", "as_json")
    name, criterion = read_criterion(flags["word"], {key: value for key, value in flags.items() if key not in plain})
    return ExportRequest(name, criterion, flags["campaign"], flags["source"])
