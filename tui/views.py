"""The screens, from the whole ledger down to one program. Each says what it shows and what opening a row does.

Row models are imported when a page is made, in another thread: they bring the arrays and the database with them.
"""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from lapledger.tui.line_table import Lines
from lapledger.tui.tables import Page, TableScreen

if TYPE_CHECKING:
    from lapledger.tui.source import View


class CampaignsScreen(TableScreen):
    """All campaigns of the ledger; one that is opened shows its problems."""

    def where(self) -> str:
        """The folder of the ledger."""
        return f"lapledger {self.desk.location}"

    def make(self, view: "View") -> Page:
        """The campaigns, or what to do next in an empty ledger."""
        from lapledger.tui.columns import campaign_grid

        return Page(campaign_grid(view.campaigns), hint=view.hint())

    def on_screen_resume(self) -> None:
        """No campaign is open here; the common part is called as well."""
        self.desk.campaign = None

    @on(Lines.Chosen)
    def _open(self, message: Lines.Chosen) -> None:
        self.desk.open_campaign(message.key)
        self.app.push_screen(ProblemsScreen(message.key))


class ProblemsScreen(TableScreen):
    """The problems of one campaign with their verdicts counted."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "open_all", "all")]

    def __init__(self, campaign: str) -> None:
        super().__init__()
        self.campaign = campaign

    def where(self) -> str:
        """The campaign."""
        return self.campaign

    def make(self, view: "View") -> Page | None:
        """The problems, once this campaign was judged."""
        from lapledger.tui.columns import problem_grid
        from lapledger.tui.rows import problem_rows

        if view.judged is None or view.judged.snapshot.name != self.campaign:
            return None
        return Page(problem_grid(problem_rows(view.judged)), hint="this campaign has no problem")

    def action_open_all(self) -> None:
        """Shows the programs of all problems in one table."""
        self.app.push_screen(ProgramsScreen(self.campaign, None))

    @on(Lines.Chosen)
    def _open(self, message: Lines.Chosen) -> None:
        self.app.push_screen(ProgramsScreen(self.campaign, message.key))


class ProgramsScreen(TableScreen):
    """The programs of one problem, or of all, with their verdicts."""

    def __init__(self, campaign: str, problem: str | None) -> None:
        super().__init__()
        self.campaign, self.problem = campaign, problem

    def where(self) -> str:
        """The campaign and the problem."""
        return f"{self.campaign} · {self.problem or 'all problems'}"

    def make(self, view: "View") -> Page | None:
        """The programs, best first."""
        from lapledger.tui.columns import program_grid
        from lapledger.tui.rows import program_rows

        if view.judged is None:
            return None
        rows = program_rows(view.judged, self.problem)
        return Page(program_grid(rows, with_problem=self.problem is None), hint="no program was in this campaign")

    @on(Lines.Chosen)
    def _open(self, message: Lines.Chosen) -> None:
        problem, program = message.key.split("\n")
        self.app.push_screen(ProgramScreen(problem, program))


class ProgramScreen(TableScreen):
    """One program: why it got its verdict, what would flip it, and its tests."""

    OPENS: ClassVar[bool] = False

    def __init__(self, problem: str, program: str) -> None:
        super().__init__()
        self.problem, self.program = problem, program

    def where(self) -> str:
        """The program."""
        return self.program

    def make(self, view: "View") -> Page | None:
        """The reasons and the tests."""
        from lapledger.tui.columns import detail_lines, test_grid
        from lapledger.tui.rows import details

        if view.judged is None:
            return None
        shown = details(view.judged, self.problem, self.program)
        return Page(test_grid(shown.tests), tuple(detail_lines(shown)), "this problem has no test")
