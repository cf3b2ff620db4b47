"""Answers a criterion from the facts in a bundle, at its cut or at an earlier one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lapledger.consumers.exports.replayer.facts import Problem, problems
from lapledger.consumers.exports.replayer.judging import Judge, Judged, combine
from lapledger.consumers.exports.replayer.known import FIELDS
from lapledger.consumers.exports.replayer.mapping import with_stored
from lapledger.consumers.exports.replayer.package_limits import enforce
from lapledger.consumers.exports.replayer.sources import NoSourcesError, interfaces
from lapledger.ledger.proof.bundles.verifier.bundle_file import BundleFile

_FIT = (
    *("calibration_id", "kind", "source_campaign", "target_campaign", "clock", "estimator", "startup", "a", "b_ns"),
    "power",
)


class UnknownQuestionError(ValueError):
    """A criterion that this replayer cannot answer; the message says why."""


class WrongFitError(UnknownQuestionError):
    """A criterion with another criterion's calibration, or with none where it needs one, or one not in the bundle."""


class Replayer:
    """Answers criteria from the facts in a bundle."""

    def __init__(self, bundle: BundleFile) -> None:
        """Nothing is read yet."""
        self.bundle = bundle
        self._loaded: dict[tuple[str, str | None], list[Problem]] = {}

    def criterion(self, stated: dict[str, Any]) -> dict[str, Any]:
        """Every field of a criterion in canonical form; UnknownQuestionError for a field that is not known here."""
        unknown = sorted({*stated} - {*FIELDS, "schema"})
        if unknown:
            raise UnknownQuestionError(f"the field {unknown[0]!r} is not known here; known: {', '.join(FIELDS)}")
        return {**FIELDS, **stated}

    def answer(self, stated: dict[str, Any], calibration: str | None, *, cut: str | None = None) -> list[Judged]:
        """The verdicts on every problem, from what the ledger held at a cut, else at the bundle's own."""
        criterion = self.criterion(stated)
        fresh = self._problems(self.bundle.about["campaign"], cut)
        if calibration is not None:
            fit = self._fit(calibration, criterion)
            stored = {problem.name: problem for problem in self._problems(fit["source_campaign"], cut)}
            fresh = [with_stored(p, stored[p.name], fit) if p.name in stored else p for p in fresh]
        elif criterion["calibration"] != "none":
            raise WrongFitError("no calibration of this kind is in the bundle; use calibration 'none'")
        if criterion["own_limits"] == "enforced":
            fresh = [enforce(problem) for problem in fresh]
        return [self._judge(problem, criterion) for problem in fresh]

    def _judge(self, problem: Problem, criterion: dict[str, Any]) -> Judged:
        """The verdicts on one problem; the interface joins c, which settles or opens a verdict as any gate does."""
        judge = Judge(problem, {**criterion, "interface": "ignored"})
        judged = judge.judged()
        if criterion["interface"] != "required" or not judge.results.stays:
            return judged
        try:
            names = [row["program_id"] for row in problem.programs]
            keeps = dict(zip(names, interfaces(self.bundle, problem), strict=True))
        except NoSourcesError:
            raise UnknownQuestionError(
                "interface = 'required' needs sources, which this bundle does not hold; export it under a criterion "
                "that needs them"
            ) from None
        verdicts = [
            replace(v, status=combine(v.status, keeps[v.program]), c=combine(v.c, keeps[v.program]))
            for v in judged.verdicts
        ]
        return replace(judged, verdicts=verdicts)

    def _problems(self, campaign: str, cut: str | None) -> Sequence[Problem]:
        key = campaign, None if cut == self.bundle.about["cut"] else cut
        if key not in self._loaded:
            self._loaded[key] = list(problems(self.bundle.at(key[1]) if key[1] else self.bundle, campaign))
        return self._loaded[key]

    def _fit(self, calibration: str, criterion: dict[str, Any]) -> dict[str, Any]:
        """A fit of the kind that a criterion requires, into the bundle's campaign; WrongFitError for another."""
        fit = self.bundle.first("calibration.fitted", _FIT, "calibration_id").get(calibration)
        if fit is None:
            raise WrongFitError(f"the calibration {calibration} is not in the bundle")
        required = {name: criterion[name] for name in ("clock", "estimator", "startup")}
        required |= {"kind": criterion["calibration"], "target_campaign": self.bundle.about["campaign"]}
        for name, value in required.items():
            if fit[name] != value:
                raise WrongFitError(
                    f"the calibration {calibration[:12]} has {name} {fit[name]}, the criterion requires {value}"
                )
        return fit | {"power": 1.0 if fit["power"] is None else fit["power"]}
