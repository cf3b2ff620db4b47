"""The screens' way to the ledger: opens it, reads one cut, closes it again.

It blocks, so the screens call it in other threads. No terminal toolkit here.
"""

from dataclasses import dataclass, replace

from lapledger.ledger.questions.open_questions import open_questions
from lapledger.ledger.questions.queries import CAMPAIGNS, Questions
from lapledger.ledger.store.location import Location
from lapledger.replay.loading import JudgedCampaign, judge_campaign
from lapledger.tui.question import Question
from lapledger.tui.rows import CampaignRow, campaign_row


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """All that is on the screens: the ledger at one cut and, once a campaign is opened, its verdicts."""

    cut: str
    campaigns: tuple[CampaignRow, ...]
    problems: int  # imported, whether they were run or not
    judged: JudgedCampaign | None = None

    def hint(self) -> str:
        """What to do next with a ledger that has no campaign yet, in one line; empty when it has one."""
        if self.campaigns:
            return ""
        if not self.problems:
            return "This ledger is empty: import problems with `lap import icpc`, then run them with `lap run`."
        plural = "s" if self.problems > 1 else ""
        return f"{self.problems} problem{plural} and no campaign yet: run their programs with `lap run`."


def read_view(location: Location, at: str | None, campaign: str | None, question: Question) -> View:
    """The ledger at a cut, by default the newest, with a campaign judged when one is named.

    LapError when it cannot be read or judged.
    """
    with open_questions(location, at) as questions:
        rows = tuple(campaign_row(row) for row in questions.rows(CAMPAIGNS))
        problems = int(questions.rows("SELECT count(*) AS n FROM problem")[0]["n"])
        view = View(str(questions.cut), rows, problems)
        return view if campaign is None else replace(view, judged=_judge(questions, campaign, question))


def _judge(questions: Questions, campaign: str, question: Question) -> JudgedCampaign:
    return judge_campaign(questions, campaign, question.criterion, name=question.name)
