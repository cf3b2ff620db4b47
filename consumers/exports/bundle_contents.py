"""What a campaign's bundle holds: its tables and named replays, and which frames and blobs they need."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapledger.consumers.derive.named_replay_reader import named
from lapledger.consumers.exports.judged_export import JudgedExport
from lapledger.ledger.proof.bundles.frame_reader import FrameAdmissions
from lapledger.ledger.questions.queries import Questions

_PROBLEMS, _CAMPAIGNS = "list_contains($problems, problem_id)", "list_contains($campaigns, campaign_id)"
_WANTED = {
    "campaign_opened": _CAMPAIGNS,
    "problem_added": _PROBLEMS,
    "test_added": _PROBLEMS,
    "program_added": _PROBLEMS,
    "worker_started": _CAMPAIGNS,
    "execution_shared": _CAMPAIGNS,
    "execution_finished": _CAMPAIGNS,
    "timing_measured": _CAMPAIGNS,
    "calibration_fitted": "list_contains($fits, calibration_id)",
    "criterion_declared": "list_contains($criteria, criterion_hash)",
    "replay_completed": "list_contains($replays, replay_id)",
}
"""The events of a bundle: raw table, and which of its rows."""


@dataclass(frozen=True, slots=True)
class ExcludedCriterion:
    """A declared criterion that has no table in a bundle, and why."""

    hash: str
    canonical: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class CampaignContents:
    """The answers in a bundle: tables of a campaign at one cut, and the named replays of it up to there."""

    answers: Sequence[JudgedExport]
    replays: Sequence[Mapping[str, Any]]
    excluded: Sequence[ExcludedCriterion] = ()

    @classmethod
    def of(
        cls, questions: Questions, answers: Sequence[JudgedExport], *, excluded: Sequence[ExcludedCriterion]
    ) -> "CampaignContents":
        """The answers with every named replay of their campaign."""
        campaign = answers[0].judged.campaign
        return cls(answers, [row for row in named(questions) if row["campaign_id"] == campaign], excluded)

    @property
    def fits(self) -> list[str]:
        """The calibrations that answers and replays depend on."""
        of_answers = {answer.judged.calibration_id for answer in self.answers if answer.judged.calibration_id}
        return sorted(of_answers | {row["calibration_id"] for row in self.replays if row["calibration_id"]})

    @property
    def criteria(self) -> list[str]:
        """The hashes of all criteria that are answered."""
        of_answers = {answer.judged.criterion.hash for answer in self.answers}
        return sorted(of_answers | {row["criterion_hash"] for row in self.replays})

    def campaigns(self, questions: Questions) -> list[str]:
        """The campaign, and those that its calibrations map from."""
        of_fits = "SELECT source_campaign FROM calibration WHERE list_contains($fits, calibration_id)"
        stored = {row["source_campaign"] for row in questions.rows(of_fits, fits=self.fits)}
        return sorted({answer.judged.campaign for answer in self.answers} | stored)


def frames_of(questions: Questions, contents: CampaignContents) -> FrameAdmissions:
    """The admissions of the frames that a bundle takes."""
    parameters: Mapping[str, list[str]] = {
        "campaigns": contents.campaigns(questions),
        "problems": list(contents.answers[0].judged.snapshot.campaign["problems"]),
        "fits": contents.fits,
        "criteria": [*contents.criteria, *(criterion.hash for criterion in contents.excluded)],
        "replays": [row["replay_id"] for row in contents.replays],
    }
    admissions: dict[tuple[str, int], set[int]] = {}
    for table, where in _WANTED.items():
        # Table and condition are constants of this module, never a user's text.
        sql = f"SELECT DISTINCT _stream, _partition, _admission FROM {table} WHERE {where}"  # noqa: S608
        used = {name: value for name, value in parameters.items() if f"${name}" in where}
        for row in questions.rows(sql, **used):
            admissions.setdefault((row["_stream"], row["_partition"]), set()).add(row["_admission"])
    return admissions


def blobs(questions: Questions, contents: CampaignContents) -> Iterator[tuple[str, bytes]]:
    """The verdicts and flips of the named replays, and the sources where a criterion requires interfaces, by SHA-256.

    Fault when one is missing.
    """
    digests = {row[name] for row in contents.replays for name in ("verdicts_blob", "flips_blob") if row[name]}
    declared = questions.rows(_CANONICAL, hashes=contents.criteria)
    required = {"interface": "required"}.items()
    if any(answer.judged.criterion.interface == "required" for answer in contents.answers) or any(
        required <= json.loads(row["canonical"]).items() for row in declared
    ):
        rows = questions.rows(_SOURCES, campaigns=contents.campaigns(questions))
        digests |= {row["source_blob"] for row in rows}
    for digest in sorted(digests):
        yield f"blobs/{digest}", questions.ledger.blobs.get(digest)


_CANONICAL = "SELECT canonical FROM criterion WHERE list_contains($hashes, criterion_hash)"
_SOURCES = """
SELECT DISTINCT p.source_blob FROM campaign c JOIN program p ON list_contains(c.programs, p.program_id)
WHERE list_contains($campaigns, c.campaign_id) AND p.source_blob IS NOT NULL
"""
