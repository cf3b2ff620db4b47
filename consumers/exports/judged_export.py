"""What an export is made of: one campaign at one cut, judged once, with its programs, problems and sources.

The reading is done here; the shapes are made elsewhere, from these values alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.loading import JudgedCampaign, judge_campaign
from lapledger.replay.measurements import ProblemMeasurements

HUMAN = "human"
STATUS_NAMES = {Status.PASS: "pass", Status.FAIL: "fail", Status.UNDECIDED: "undecided"}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What an export is asked for: a criterion under a name, and which campaign is judged under it."""

    name: str
    criterion: Criterion
    campaign: str | None = None
    source: str | None = None  # campaign that the calibration comes from


@dataclass(frozen=True, slots=True, eq=False)
class JudgedExport:
    """A judged campaign with the stored rows of its problems and programs."""

    judged: JudgedCampaign
    problems: Mapping[str, Mapping[str, Any]]
    programs: Mapping[str, Mapping[str, Any]]
    finished: str  # label of the last attempt's end, UTC; empty where nothing was run

    def about(self) -> dict[str, Any]:
        """What every export states of itself: cut, campaign, criterion, calibration."""
        criterion = self.judged.criterion
        return {
            "cut": self.judged.cut,
            "campaign": self.judged.campaign,
            "criterion": self.judged.name,
            "criterion_hash": criterion.hash,
            "criterion_canonical": criterion.canonical().decode(),
            "calibration": self.judged.calibration_id,
        }

    @property
    def undecided(self) -> int:
        """How many candidates have an undecided verdict."""
        return sum(int((v.status[v.candidate] == Status.UNDECIDED).sum()) for v in self.judged.verdicts)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One program as other tools see it: an answer to a problem, with its verdict."""

    problem: str
    program: str
    row: int  # in its problem's verdicts
    source: str
    status: Status
    verdicts: Verdicts
    measurements: ProblemMeasurements


def judge_export(questions: Questions, request: ExportRequest) -> JudgedExport:
    """All that an export needs, read at the questions' cut; UserError when there is no such campaign or calibration."""
    judged = judge_campaign(questions, request.campaign, request.criterion, name=request.name, source=request.source)
    problems = questions.rows("SELECT * FROM problem ORDER BY problem_id")
    programs = questions.rows("SELECT * FROM program ORDER BY program_id")
    last = questions.rows(_LAST, campaign=judged.campaign)[0]["last"]
    return JudgedExport(
        judged,
        {row["problem_id"]: row for row in problems},
        {row["program_id"]: row for row in programs},
        last or "",
    )


_LAST = "SELECT max(finished_at) AS last FROM execution WHERE campaign_id = $campaign"


def one_model(judged: JudgedCampaign, model: str | None) -> str:
    """The model that a file of one model is about: the one named, else the only one that is not human.

    UserError when it has no candidates, or when several models have and none is named.
    """
    known = ", ".join(judged.models) or "none"
    if model is not None:
        if model not in judged.models:
            raise UserError(f"no candidates of {model!r} in campaign {judged.campaign!r}; known: {known}")
        return model
    candidates = sorted({*judged.models} - {HUMAN})
    if len(candidates) > 1:
        raise UserError(f"campaign {judged.campaign!r} has several models; name one with --model: {known}")
    return candidates[0] if candidates else HUMAN


def samples(export: JudgedExport, questions: Questions, model: str) -> Iterator[tuple[str, list[Sample]]]:
    """Each problem with the candidates of one model, in the order of their ids; Fault when a source is missing."""
    for m, v in zip(export.judged.measurements, export.judged.verdicts, strict=True):
        rows = [row for row, by in enumerate(m.models) if by == model and m.candidate[row]]
        yield m.problem, [_sample(export, questions, m=m, v=v, row=row) for row in rows]


def _sample(export: JudgedExport, questions: Questions, *, m: ProblemMeasurements, v: Verdicts, row: int) -> Sample:
    program = m.programs[row]
    source = source_of(questions, export.programs[program]["source_blob"]) or ""
    return Sample(m.problem, program, row, source, Status(int(v.status[row])), v, m)


def source_of(questions: Questions, blob: str | None) -> str | None:
    """A program's text; None where it is not known. Fault when the blob is missing."""
    return None if blob is None else questions.ledger.blobs.get(blob).decode("utf-8", "replace")
