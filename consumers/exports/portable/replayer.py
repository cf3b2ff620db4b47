"""Answers a criterion from the facts in a bundle, at its cut or at an earlier one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from consumers.exports.portable.facts import Bundle, Problem, problems
from consumers.exports.portable.judging import Judge, Judged, combine
from consumers.exports.portable.mapping import with_stored
from consumers.exports.portable.sources import NoSourcesError, interfaces

_FIT = (
    *("calibration_id", "source_campaign", "target_campaign", "clock", "estimator", "startup", "a", "b_ns"),
    "power",
)


class UnknownQuestionError(ValueError):
    """A criterion that this replayer cannot answer; the message says why."""


class Replayer:
    """Answers criteria from the facts in a bundle."""

    def __init__(self, bundle: Bundle) -> None:
        """Nothing is read yet."""
        self.bundle = bundle
        self.fields: dict[str, Any] = bundle.about["fields"]
        self._loaded: dict[tuple[str, str | None], list[Problem]] = {}

    def criterion(self, stated: dict[str, Any]) -> dict[str, Any]:
        """Every field of a criterion in canonical form; UnknownQuestionError for one that is not known here."""
        unknown = sorted({*stated} - {*self.fields, "schema"})
        if unknown:
            raise UnknownQuestionError(f"the field {unknown[0]!r} is not known here; known: {', '.join(self.fields)}")
        return {**self.fields, **stated}

    def answer(self, stated: dict[str, Any], calibration: str | None, *, cut: str | None = None) -> list[Judged]:
        """The verdicts on every problem, from what the ledger held at a cut, else at the bundle's own."""
        criterion = self.criterion(stated)
        fresh = self._problems(self.bundle.about["campaign"], cut)
        if calibration is not None:
            fit = self._fit(calibration)
            stored = {problem.name: problem for problem in self._problems(fit["source_campaign"], cut)}
            fresh = [with_stored(p, stored[p.name], fit) if p.name in stored else p for p in fresh]
        elif criterion["calibration"] != "none":
            raise UnknownQuestionError("no calibration of this kind is in the bundle; ask with calibration 'none'")
        return [self._judged(problem, criterion) for problem in fresh]

    def _judged(self, problem: Problem, criterion: dict[str, Any]) -> Judged:
        """The verdicts on one problem; the interface joins c, which settles or opens a verdict as any gate does."""
        judge = Judge(problem, {**criterion, "interface": "ignored"})
        judged = judge.judged()
        if criterion["interface"] != "required" or not judge.trials.stays:
            return judged
        try:
            names = [row["program_id"] for row in problem.programs]
            kept = dict(zip(names, interfaces(self.bundle, problem), strict=True))
        except NoSourcesError:
            raise UnknownQuestionError(
                "interface = 'required' asks for sources, which this bundle does not hold; export it under a criterion "
                "that asks for them"
            ) from None
        verdicts = [replace(v, status=combine(v.status, kept[v.program])) for v in judged.verdicts]
        return replace(judged, verdicts=verdicts)

    def _problems(self, campaign: str, cut: str | None) -> Sequence[Problem]:
        key = campaign, None if cut == self.bundle.about["cut"] else cut
        if key not in self._loaded:
            self._loaded[key] = list(problems(self.bundle.at(key[1]) if key[1] else self.bundle, campaign))
        return self._loaded[key]

    def _fit(self, calibration: str) -> dict[str, Any]:
        fit = self.bundle.first("calibration.fitted", _FIT, "calibration_id")[calibration]
        return fit | {"power": 1.0 if fit["power"] is None else fit["power"]}
