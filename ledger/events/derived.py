"""Facts that were derived from other facts: criteria, calibrations, rewards, named replays; and what people noted.

Ids of derived facts hash what they depend on (type, subject, criterion, calibration, evidence, kernel version),
never the cut, a clock or a release: deriving twice is harmless.
"""

from dataclasses import dataclass
from typing import Annotated

from lapledger.ledger.events.base import CONTROL, fact


@fact("criterion.declared", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionDeclared:
    """A criterion in canonical form, so that every derived fact can be weighed again."""

    criterion_hash: Annotated[str, "SHA-256 of the canonical form"]
    name: Annotated[str, "the user's name for it"]
    canonical: Annotated[str, "canonical JSON (RFC 8785), defaults omitted"]


@fact("calibration.fitted", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationFittedV1:
    """A directed map, before other kinds than lines existed and before the fitted range was recorded."""

    calibration_id: Annotated[str, "hash of campaigns, kind, criterion's clock and estimator, evidence and kernel"]
    kind: Annotated[str, "family of the map, for instance `affine`"]
    source_campaign: Annotated[str, "where the stored durations come from"]
    target_campaign: Annotated[str, "whose state they are mapped into"]
    service: Annotated[str, "worker class"]
    clock: Annotated[str, "clock of the durations"]
    estimator: Annotated[str, "how repetitions were joined"]
    startup: Annotated[str, "`keep`, or `subtract` where the start-up was taken off"]
    a: Annotated[float, "slope"]
    b_ns: Annotated[float, "intercept, nanoseconds"]
    pairs: Annotated[int, "(reference, test) pairs measured on both sides, uncensored"]
    problems: Annotated[int, "problems they come from"]
    r2: Annotated[float | None, "leave-one-problem-out R squared"]
    error_map: Annotated[float | None, "median relative error out of fold, with the map"]
    error_none: Annotated[float | None, "the same with no map"]
    points_map: Annotated[float | None, "mean move of a program's percentile out of fold, in points, with the map"]
    points_none: Annotated[float | None, "the same with no map"]
    spearman_before: Annotated[float | None, "rank correlation of stored against fresh scores, unmapped"]
    spearman_after: Annotated[float | None, "the same, mapped out of fold"]
    refused: Annotated[str, "why the fit must not be used; empty when it may"]
    evidence_digest: Annotated[str, "digest of the timings used"]
    kernel: Annotated[str, "semantic version of the scoring engine"]
    cut: Annotated[str, "the cut it was computed at"]


@fact(
    "calibration.fitted",
    2,
    stream=CONTROL,
    added={"power": 1.0, "low_ns": None, "high_ns": None, "moved": None, "outside": None, "r2_none": None},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationFitted:
    """A directed map of stored reference durations of one campaign into another: fresh = a * stored ** power + b."""

    calibration_id: Annotated[str, "hash of campaigns, kind, criterion's clock and estimator, evidence and kernel"]
    kind: Annotated[str, "kind of the map: `multiplicative`, `affine`, `affine-weighted`, `theil-sen` or `power`"]
    source_campaign: Annotated[str, "where the stored durations come from"]
    target_campaign: Annotated[str, "whose state they are mapped into"]
    service: Annotated[str, "worker class"]
    clock: Annotated[str, "clock of the durations"]
    estimator: Annotated[str, "how repetitions were joined"]
    startup: Annotated[str, "`keep`, or `subtract` where the start-up was taken off"]
    a: Annotated[float, "slope"]
    b_ns: Annotated[float, "intercept, nanoseconds"]
    pairs: Annotated[int, "(reference, test) pairs measured on both sides, uncensored"]
    problems: Annotated[int, "problems they come from"]
    r2: Annotated[float | None, "leave-one-problem-out R squared"]
    error_map: Annotated[float | None, "median relative error out of fold, with the map"]
    error_none: Annotated[float | None, "the same with no map"]
    points_map: Annotated[float | None, "mean move of a program's percentile out of fold, in points, with the map"]
    points_none: Annotated[float | None, "the same with no map"]
    spearman_before: Annotated[float | None, "rank correlation of stored against fresh scores, unmapped"]
    spearman_after: Annotated[float | None, "the same, mapped out of fold"]
    refused: Annotated[str, "why the fit must not be used; empty when it may"]
    evidence_digest: Annotated[str, "digest of the timings used"]
    kernel: Annotated[str, "semantic version of the scoring engine"]
    cut: Annotated[str, "the cut it was computed at"]
    power: Annotated[float, "exponent of the stored duration; 1 unless the kind is `power`"]
    low_ns: Annotated[int | None, "shortest stored duration of the pairs, nanoseconds"]
    high_ns: Annotated[int | None, "longest stored duration of the pairs, nanoseconds"]
    moved: Annotated[int | None, "stored durations of references that were not re-run, which the map moves"]
    outside: Annotated[int | None, "of these, how many lie below the shortest or above the longest pair"]
    r2_none: Annotated[float | None, "R squared of no map"]


@fact("reward.assigned", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class RewardAssigned:
    """A reward of one program under one criterion, with the digest of the exact timings that it used."""

    reward_id: Annotated[str, "hash of subject, criterion, calibration, evidence and kernel"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    campaign_id: Annotated[str, "the campaign"]
    criterion_hash: Annotated[str, "the criterion"]
    calibration_id: Annotated[str | None, "the calibration, where one was used"]
    value: Annotated[float, "the reward, in [-1, 1]"]
    c: Annotated[bool | None, "correctness gate; null where undecided"]
    g: Annotated[bool | None, "optimization gate; null where undecided"]
    q_numerator: Annotated[int, "quality q = numerator / denominator, 0 best"]
    q_denominator: Annotated[int, "see q_numerator"]
    pool_size: Annotated[int, "references that it was ranked against"]
    evidence_digest: Annotated[str, "digest of the tests, pool, outcomes and timings used"]
    kernel: Annotated[str, "semantic version of the scoring engine"]
    cut: Annotated[str, "the cut it was computed at"]


@fact("replay.completed", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCompletedV1:
    """A named question to old facts, before it kept its verdicts and what flipped."""

    replay_id: Annotated[str, "hash of campaign, criterion, evidence and kernel"]
    name: Annotated[str, "the user's name for it"]
    reason: Annotated[str, "why it was asked"]
    campaign_id: Annotated[str, "the campaign"]
    criterion_hash: Annotated[str, "the criterion"]
    calibration_id: Annotated[str | None, "the calibration, where one was used"]
    result: Annotated[str, "JSON of the table"]
    evidence_digest: Annotated[str, "digest of what it used"]
    kernel: Annotated[str, "semantic version of the scoring engine"]
    cut: Annotated[str, "the cut it was computed at"]


@fact(
    "replay.completed",
    2,
    stream=CONTROL,
    added={"release": "", "verdicts_blob": None, "against": None, "flipped": None, "flips_blob": None},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCompleted:
    """A named question to old facts, with its answer, and the verdicts that it flipped of an earlier one."""

    replay_id: Annotated[str, "hash of campaign, k, criterion, calibration, evidence and kernel"]
    name: Annotated[str, "the user's name for it"]
    reason: Annotated[str, "why it was asked"]
    campaign_id: Annotated[str, "the campaign"]
    criterion_hash: Annotated[str, "the criterion"]
    calibration_id: Annotated[str | None, "the calibration, where one was used"]
    result: Annotated[str, "JSON of the table"]
    evidence_digest: Annotated[str, "digest of what it used"]
    kernel: Annotated[str, "semantic version of the scoring engine"]
    cut: Annotated[str, "the cut it was computed at"]
    release: Annotated[str, "version of lapledger"]
    verdicts_blob: Annotated[str | None, "SHA-256 of the JSON of every candidate's verdict"]
    against: Annotated[str | None, "the earlier replay whose verdicts these were held against"]
    flipped: Annotated[int | None, "candidates whose verdict differs from it; null where there was none"]
    flips_blob: Annotated[str | None, "SHA-256 of the JSON of these flips"]


@fact("annotation.made", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationMade:
    """A person marked something as suspect. Criteria may exclude it; nothing is deleted."""

    annotation_id: Annotated[str, "UUIDv7"]
    subject: Annotated[str, "`campaign`, `worker` or `program`"]
    subject_id: Annotated[str, "its id"]
    mark: Annotated[str, "for instance `suspect`"]
    author: Annotated[str, "who says so"]
    reason: Annotated[str, "one line"]


@fact("epoch.opened", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochOpened:
    """A producer process started; its frames carry this epoch."""

    epoch: Annotated[str, "fresh id of the process start (UUIDv7)"]
    label: Annotated[str, "what it is, for instance `lap run`"]
    release: Annotated[str, "version of lapledger"]


@fact("epoch.closed", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochClosed:
    """A producer process ended gracefully."""

    epoch: Annotated[str, "the epoch"]
    frames: Annotated[int, "frames that it appended, this one included"]
