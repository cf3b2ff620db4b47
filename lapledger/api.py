"""`lapledger.open` and the `Ledger` that it returns: the Python API, read-only and silent.

Each method calls the function behind the command of the same name. Mistakes are a `UserError` with one line.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lapledger.ledger.errors import UserError
from lapledger.results import Comparison, Explanations, Replay, RewardTrace, Table, table_of
from lapledger.settings import Settings, read_settings
from lapledger.workflows.analysis.criterion_arguments import named_criterion, tau_texts

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions
    from lapledger.replay.criteria import Criterion

Taus = str | float | Sequence[str | float]
"""One threshold in percent, or several."""


def open(ledger: str | PathLike[str] | Settings | None = None, at: str | None = None) -> "Ledger":  # noqa: A001
    """A ledger to read: a folder, `Settings`, or by default the settings in force, as for `lap`.

    `at` is a cut that an earlier output printed; by default everything that is admitted now. UserError where there is
    no ledger, or where the cut is ahead of it.
    """
    settings = ledger if isinstance(ledger, Settings) else read_settings(ledger=ledger)
    return Ledger(settings, at)


class Ledger:
    """An open ledger at one cut; close it, or use it in a `with` statement."""

    def __init__(self, settings: Settings, at: str | None = None) -> None:
        """Open the ledger of the settings at a cut; UserError as for `lapledger.open`."""
        from lapledger.ledger.questions.open_questions import open_questions

        self._folder = settings.ledger
        self._stack = ExitStack()
        self._queries: Questions | None = self._stack.enter_context(open_questions(settings.location, at))
        self._cut = str(self._queries.cut)

    @property
    def cut(self) -> str:
        """The cut that everything is read at; `lapledger.open(..., at=cut)` gives the same answers later."""
        return self._cut

    def close(self) -> None:
        """Release the ledger's files; a second call does nothing."""
        self._queries = None
        self._stack.close()

    def __enter__(self) -> Self:
        """The ledger itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the ledger."""
        self.close()

    def __repr__(self) -> str:
        """Its folder and cut."""
        return f"<lapledger.Ledger {self._folder}, {'closed' if self._queries is None else f'cut {self._cut}'}>"

    def sql(self, query: str, *, timeout: float = 60.0, **parameters: Any) -> Table:
        """The rows of one SELECT over the documented views; `$name` in the query is the parameter `name`.

        UserError where the query is no single SELECT, names what is not there, takes longer than `timeout` seconds or
        more memory (1 GB), or has an answer of more than 512 MiB.
        """
        from lapledger.ledger.questions.queries import Questions

        queries = Questions(self._open().ledger, self._open().cut)  # a user's query locks its connection's settings
        try:
            return Table(queries.query_user(query, parameters=parameters, timeout=timeout).table, self.cut)
        finally:
            queries.close()

    def timings(self, *, campaign: str | None = None, program: str | None = None) -> Table:
        """Every timing of a campaign, or of one program, one row a repetition: the columns of the view `timing`.

        Durations are integer nanoseconds. `campaign` is by default the only one, else `main`; `program` is named as
        for `why`. UserError where there is none of that name.
        """
        from lapledger.workflows.analysis.find_program import find_program

        queries = self._open()
        rows = queries.query(
            _TIMINGS,
            campaign=self._campaign(campaign),
            program=None if program is None else find_program(queries, program)["program_id"],
        )
        return Table(rows, self.cut)

    def rewards(self, *, campaign: str | None = None, criterion: str | None = None) -> Table:
        """The stored rewards of a campaign, one row a reward, with gates, quality, program and criterion.

        `criterion` is the name that they were assigned under, by default any. UserError where the campaign is unknown.
        """
        rows = self._open().query(_REWARDS, campaign=self._campaign(campaign), criterion=criterion)
        visible = ("reward_id", "name", "model", "criterion", "value", "c", "g", "q_numerator", "q_denominator")
        return Table(rows, self.cut, visible=visible)

    def trace(self, reward_id: str) -> RewardTrace:
        """A reward with the raw timings that it was computed from, recomputed at its own cut.

        The first digits of the id are enough. UserError where no reward, or more than one, has such an id.
        """
        from lapledger.consumers.derive.reward_audit import trace

        queries = self._open()
        details = trace(queries.ledger, queries, reward_id)
        rows = [
            {
                "test_id": test.test_id,
                "outcome": test.outcome,
                "duration_ns": test.duration_ns,
                "percentile": test.percentile,
                "references": len(test.references_ns),
                **timing,
            }
            for test in details.tests
            for timing in test.timings
        ]
        visible = ("test_id", "outcome", "repetition", "wall_ns", "percentile", "references")
        return RewardTrace(table_of(rows, visible), self.cut, details, visible=visible)

    def replay(
        self,
        criterion: "str | PathLike[str] | Criterion | None" = None,
        *,
        tau: Taus = (),
        timeout: str | float | None = None,
        calibration: str | None = None,
        calibration_from: str | None = None,
        settings: Mapping[str, Any] | None = None,
        campaign: str | None = None,
        model: str | None = None,
        k: int = 1,
    ) -> Replay:
        """Stored results scored under a criterion, at one tau or several; no program is executed.

        `criterion` is a preset, a TOML file or a `Criterion`, by default plain correctness. `timeout` (seconds, or
        "500ms"), `calibration` (a kind, such as "affine") and `settings` (any other keys) override its keys;
        `calibration_from` names the campaign that the calibration comes from. `model` judges the
        programs of one model alone; `k` is that of pass@k. UserError for an unknown name, key or value.
        """
        from lapledger.replay.loading import load
        from lapledger.workflows.analysis.replay_campaign import at_taus, judge_criteria, known_models

        name, chosen = named_criterion(criterion, {**(settings or {}), "calibration": calibration}, timeout)
        criteria = at_taus(name, chosen, tau_texts(tau))
        snapshot = load(self._open(), campaign)
        models = known_models(snapshot, [] if model is None else [model])
        judged = judge_criteria(self._open(), snapshot, criteria, source=calibration_from, k=k, models=models)
        rows = [{"criterion": answer.name, **_estimate_row(row)} for answer in judged for row in answer.estimate_rows]
        counts = ("criterion", "model", "problems", "programs", "undecided")
        visible = (*counts, f"pass@{k}", "low", "high", "upper_bound")
        return Replay(table_of(rows, visible), self.cut, judged, visible=visible)

    def compare(
        self,
        a: str,
        b: str,
        criterion: "str | PathLike[str] | Criterion | None" = None,
        *,
        tau: Taus = (100, 50, 30, 10),
        timeout: str | float | None = None,
        calibration: str | None = None,
        calibration_from: str | None = None,
        settings: Mapping[str, Any] | None = None,
        campaigns: tuple[str | None, str | None] = (None, None),
        k: int = 1,
        seed: int = 0,
        resamples: int = 10_000,
        adjust: str = "holm",
    ) -> Comparison:
        """Two models, or patterns of training runs, on the same problems: differences, win rates, a noise baseline.

        `campaigns` are those of A and B; two campaigns are compared through a stored `calibration` only, and
        `calibration_from` names its campaign where several are stored. `seed` and `resamples` are those of the
        bootstrap; `adjust` is how p values hold over all comparisons. UserError where a pattern matches no model.
        """
        from lapledger.workflows.analysis.compare import ComparisonOptions, compare, same_code
        from lapledger.workflows.analysis.comparison_arms import find_arms
        from lapledger.workflows.analysis.tiers import tiers

        queries = self._open()
        _, chosen = named_criterion(criterion, {**(settings or {}), "calibration": calibration}, timeout)
        arms = find_arms(queries, (a, b), campaigns, chosen, source=calibration_from, criteria=len(tau_texts(tau)))
        of_problem, _ = tiers(queries, arms.a.judged.measurements, "auto")
        options = ComparisonOptions(tuple(tau_texts(tau)), k, seed, resamples, adjust)
        tables = compare(arms, options, of_problem, same_code(queries, arms, None))
        rows = [
            {"tau": row.tau, "tier": row.tier, **asdict(row.estimate), "adjusted_p": row.adjusted_p}
            for row in tables.differences
        ]
        visible = ("tau", "tier", "problems", "a", "b", "difference", "over_problems", "p", "adjusted_p")
        return Comparison(table_of(rows, visible), self.cut, arms, tables, visible=visible)

    def why(
        self,
        program: str,
        criterion: "str | PathLike[str] | Criterion | None" = None,
        *,
        tau: str | float | None = None,
        timeout: str | float | None = None,
        calibration: str | None = None,
        calibration_from: str | None = None,
        settings: Mapping[str, Any] | None = None,
        campaign: str | None = None,
    ) -> Explanations:
        """Why a program got its verdict, and the smallest change that would flip it.

        `program` is an id, the start of one, or `PROBLEM/NAME`. Without a criterion, the verdicts of its stored
        rewards are explained. UserError where no program, or more than one, is named.
        """
        from lapledger.workflows.analysis.explain_verdict import NamedCriterion, explain_verdicts, reward_criteria
        from lapledger.workflows.analysis.find_program import find_program

        queries = self._open()
        row = find_program(queries, program)
        overrides = {**(settings or {}), "tau": None if tau is None else str(tau), "calibration": calibration}
        criteria = reward_criteria(queries, row["program_id"], campaign)
        if criterion is not None or timeout or any(value is not None for value in overrides.values()) or not criteria:
            named = named_criterion(criterion, overrides, timeout)
            criteria = [NamedCriterion(campaign, *named, source=calibration_from)]
        rows = explain_verdicts(queries, row["program_id"], criteria)
        visible = ("criterion", "campaign", "status", "deciding_test", "q_lo", "q_hi", "factor")
        return Explanations(table_of(rows, visible), self.cut, row, visible=visible)

    def _open(self) -> "Questions":
        if self._queries is None:
            raise UserError("this ledger is closed; open it again with lapledger.open(...)")
        return self._queries

    def _campaign(self, name: str | None) -> str:
        from lapledger.replay.loading import find_campaign

        return str(find_campaign(self._open(), name)["campaign_id"])


def _estimate_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """An estimate with its interval in two columns, null with one problem."""
    low, high = row["interval"] or (None, None)
    plain = {key: value for key, value in row.items() if key not in ("interval", "value")}
    return {**plain, f"pass@{row['k']}": row["value"], "low": low, "high": high}


_TIMINGS = """
SELECT * FROM timing WHERE campaign_id = $campaign AND coalesce($program, program_id) = program_id
ORDER BY program_id, test_id, attempt_id, repetition
"""
_REWARDS = """
SELECT v.reward_id, v.program_id, v.name, v.model, c.name AS criterion, v.value, v.c, v.g, v.q_numerator,
  v.q_denominator, v.pool_size, v.label, v.criterion_hash, v.calibration_id, v.evidence_digest, v.kernel, v.cut
FROM verdict v JOIN criterion c USING (criterion_hash)
WHERE v.campaign_id = $campaign AND coalesce($criterion, c.name) = c.name
ORDER BY v.program_id, c.name, v.reward_id
"""
