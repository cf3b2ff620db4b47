"""What an export is made of: one campaign at one cut, judged once, with its programs, problems and sources.

The reading is done here; the shapes are made elsewhere, from these values alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lapledger.consumers.derive.calibrator import find_calibration
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.criteria import Criterion
from lapledger.replay.estimates import estimate
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.loading import Calibration, Snapshot, judge_all, load
from lapledger.replay.measurements import ProblemMeasurements

HUMAN = "human"
STATUS_WORDS = {Status.PASS: "pass", Status.FAIL: "fail", Status.UNDECIDED: "undecided"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The question that an export answers: a criterion under a name, and which campaign it is put to."""

    name: str
    criterion: Criterion
    campaign: str | None = None
    source: str | None = None  # campaign that the calibration comes from


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """One campaign judged under one criterion, with the stored rows of its members."""

    asked: Asked
    snapshot: Snapshot
    measured: Sequence[ProblemMeasurements]
    verdicts: Sequence[Verdicts]
    calibration: Calibration | None
    problems: Mapping[str, Mapping[str, Any]]
    programs: Mapping[str, Mapping[str, Any]]
    finished: str  # label of the last attempt's end, UTC; empty where nothing was run

    def about(self) -> dict[str, Any]:
        """What every export says of itself: cut, campaign, criterion, calibration."""
        criterion = self.asked.criterion
        return {
            "cut": self.snapshot.cut,
            "campaign": self.snapshot.name,
            "criterion": self.asked.name,
            "criterion_hash": criterion.hash,
            "criterion_canonical": criterion.canonical().decode(),
            "calibration": self.calibration.calibration_id if self.calibration else None,
        }

    @property
    def undecided(self) -> int:
        """Candidates whose verdict is open."""
        return sum(int((v.status[v.candidate] == Status.UNDECIDED).sum()) for v in self.verdicts)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One program as other tools see it: an answer to a problem, with its verdict."""

    problem: str
    program: str
    row: int  # in its problem's verdicts
    source: str
    status: Status
    judged: Verdicts
    measured: ProblemMeasurements


def gather(questions: Questions, asked: Asked) -> Gathered:
    """All that an export needs, read at the questions' cut; UserError when there is no such campaign or calibration."""
    snapshot = load(questions, asked.campaign)
    calibration = find_calibration(questions, snapshot.name, asked.criterion, source=asked.source)
    measured, verdicts = judge_all(snapshot, asked.criterion, calibration)
    problems = questions.rows("SELECT * FROM problem ORDER BY problem_id")
    programs = questions.rows("SELECT * FROM program ORDER BY program_id")
    last = questions.rows(_LAST, campaign=snapshot.name)[0]["last"]
    return Gathered(
        asked,
        snapshot,
        measured,
        verdicts,
        calibration,
        {row["problem_id"]: row for row in problems},
        {row["program_id"]: row for row in programs},
        last or "",
    )


_LAST = "SELECT max(finished_at) AS last FROM execution WHERE campaign_id = $campaign"


def one_model(gathered: Gathered, model: str | None) -> str:
    """The model that a file of one model is about: the one named, else the only one that is not human.

    UserError when it has no candidates, or when several models have and none is named.
    """
    models = {m.models[row] for m in gathered.measured for row in range(len(m.models)) if m.candidate[row]}
    known = ", ".join(sorted(models)) or "none"
    if model is not None:
        if model not in models:
            raise UserError(f"no candidates of {model!r} in campaign {gathered.snapshot.name!r}; known: {known}")
        return model
    candidates = sorted(models - {HUMAN})
    if len(candidates) > 1:
        raise UserError(f"campaign {gathered.snapshot.name!r} has several models; name one with --model: {known}")
    return candidates[0] if candidates else HUMAN


def samples(gathered: Gathered, questions: Questions, model: str) -> Iterator[tuple[str, list[Sample]]]:
    """Each problem with the candidates of one model, in the order of their ids; Fault when a source is missing."""
    for m, v in zip(gathered.measured, gathered.verdicts, strict=True):
        rows = [row for row, who in enumerate(m.models) if who == model and m.candidate[row]]
        yield m.problem, [_sample(gathered, questions, measured=m, judged=v, row=row) for row in rows]


def _sample(
    gathered: Gathered, questions: Questions, *, measured: ProblemMeasurements, judged: Verdicts, row: int
) -> Sample:
    m, v = measured, judged
    program = m.programs[row]
    source = source_of(questions, gathered.programs[program]["source_blob"]) or ""
    return Sample(m.problem, program, row, source, Status(int(v.status[row])), v, m)


def source_of(questions: Questions, blob: str | None) -> str | None:
    """A program's text; None where it is not known. Fault when the blob is missing."""
    return None if blob is None else questions.ledger.blobs.get(blob).decode("utf-8", "replace")


def estimate_rows(gathered: Gathered, k: int = 1) -> list[dict[str, Any]]:
    """pass@k of each model as `lap replay` shows it: counts, bound, and the 95% interval with its method."""
    return [asdict(one) for one in estimate(gathered.verdicts, gathered.measured, k)]
