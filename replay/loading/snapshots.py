"""A campaign at one cut as dense measurements, problem by problem.

The same ledger at the same cut always gives the same snapshot: nothing depends on a clock, and nothing is appended.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lapledger.ledger.errors import UserError, nearest
from lapledger.ledger.events import latest
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.reader import events
from lapledger.ledger.store.segments import ORIGIN_COLUMNS
from lapledger.replay.loading.attempts import FINISHED
from lapledger.replay.loading.lookups import Lookups
from lapledger.replay.loading.members import Campaign
from lapledger.replay.loading.rows import Rows
from lapledger.replay.loading.runs import measurements, timed
from lapledger.replay.loading.stored import Attempts, Source
from lapledger.replay.measurements import CLOCKS, ProblemMeasurements

KERNEL = "1.3.0"
"""Semantic version of the scoring engine; part of every derived id, raised when a verdict could change."""

MAIN = "main"
"""The campaign that is meant when several are stored and none is named."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One campaign at one cut: its problems' measurements and the digest of what each program's row consists of."""

    campaign: Mapping[str, Any]
    cut: str
    problems: tuple[ProblemMeasurements, ...]
    rows: Mapping[str, str]
    """Program id -> digest of its accepted attempts, outcomes and timings' digests, test by test; read when asked."""
    lookups: Lookups | None = None
    """Sources and groups of rollouts, for the criteria that ask for them; None where nobody can look."""

    @property
    def name(self) -> str:
        """The campaign's id."""
        return str(self.campaign["campaign_id"])


def find_campaign(questions: Questions, name: str | None) -> Mapping[str, Any]:
    """The campaign of that id; without a name the only one, or the one called `main`. UserError otherwise."""
    event_type = latest("campaign.opened")
    ledger, cut = questions.ledger, questions.cut
    ids = events(ledger, event_type.name, event_type.version, cut, columns=["campaign_id"])["campaign_id"]
    known = sorted(set(ids.to_pylist()))
    chosen = known[0] if name is None and len(known) == 1 else name or MAIN
    if chosen in known:
        where = {"campaign_id": [chosen]}  # the members of others may be many
        first = events(ledger, event_type.name, event_type.version, cut, where=where).slice(0, 1)
        row: Mapping[str, Any] = first.drop_columns(list(ORIGIN_COLUMNS)).to_pylist()[0]
        return row
    if not known:
        raise UserError("the ledger holds no campaign at this cut; run the programs with `lap run`")
    reason = (
        "several campaigns are stored" if name is None else f"no campaign {name!r} at this cut{nearest(name, known)}"
    )
    raise UserError(f"{reason}; choose one with --campaign: {', '.join(known)}")


def load(questions: Questions, campaign: str | None = None, *, clocks: frozenset[str] = CLOCKS) -> Snapshot:
    """The measurements of a campaign at the questions' cut, problems in the order of the campaign.

    Whoever knows what will be asked names its `clocks`: the others are not read, and refuse to be asked.
    """
    chosen = find_campaign(questions, campaign)
    source = Source(questions, Campaign.of(chosen))
    problems = tuple(_measured(source, clocks))
    return Snapshot(chosen, str(questions.cut), problems, Rows(source, problems), Lookups(questions))


def _measured(source: Source, clocks: frozenset[str]) -> Iterator[ProblemMeasurements]:
    with Attempts(source) as attempts:
        for stored in source.problems(source.campaign.row["problems"], FINISHED, timed(clocks)):
            yield measurements(stored, source.campaign, attempts, clocks=clocks)
