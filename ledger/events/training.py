"""Facts about training: runs, groups of rollouts, optimizer steps, policies, and judged pairs."""

from dataclasses import dataclass
from typing import Annotated

from lapledger.ledger.events.base import CONTROL, fact


@fact("training.declared", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingDeclared:
    """A training run with everything that names it."""

    training_id: Annotated[str, "the run"]
    model: Annotated[str, "starting checkpoint"]
    data: Annotated[str, "which problems"]
    environment: Annotated[str, "criterion hash of the reward"]
    reward: Annotated[str, "reward family"]
    seed: Annotated[int, "seed"]
    settings: Annotated[str, "canonical JSON of all other settings"]


@fact("policy.updated", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyUpdated:
    """New weights became the policy that generates."""

    training_id: Annotated[str, "the run"]
    policy: Annotated[int, "policy version: the optimizer step that made it"]
    weights_digest: Annotated[str, "SHA-256 of the weights"]


@fact("step.taken", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken:
    """One optimizer step."""

    training_id: Annotated[str, "the run"]
    step: Annotated[int, "step, from 1"]
    groups: Annotated[tuple[str, ...], "groups that it learned from"]
    dropped_zero_advantage: Annotated[int, "groups dropped because all rewards were equal"]
    dropped_stale: Annotated[int, "groups dropped because their policy was too old"]
    dropped_refit: Annotated[int, "groups dropped because they straddled a calibration"]
    tokens: Annotated[int, "tokens in the loss"]
    loss: Annotated[float, "loss"]
    learning_rate: Annotated[float, "learning rate"]


@fact("group.opened", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOpenedV1:
    """A prompt was handed out for a group of rollouts, before policy and prompt could be unknown."""

    group_id: Annotated[str, "the group"]
    training_id: Annotated[str, "the run"]
    problem_id: Annotated[str, "the problem"]
    policy: Annotated[int, "policy version at the start"]
    size: Annotated[int, "rollouts wanted"]
    prompt_blob: Annotated[str, "SHA-256 of the prompt"]


@fact("group.opened", 2)
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOpened:
    """A prompt was handed out for a group of rollouts."""

    group_id: Annotated[str, "the group"]
    training_id: Annotated[str, "the run"]
    problem_id: Annotated[str, "the problem"]
    policy: Annotated[int | None, "policy version at the start; null when the trainer does not tell"]
    size: Annotated[int, "rollouts wanted"]
    prompt_blob: Annotated[str | None, "SHA-256 of the prompt; null when the trainer does not tell"]


@fact("rollout.sampled", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSampledV1:
    """One sampled answer of a policy, before policy, counts and temperature could be null; an unknown count is -1."""

    rollout_id: Annotated[str, "the rollout"]
    group_id: Annotated[str, "its group"]
    problem_id: Annotated[str, "the problem"]
    ordinal: Annotated[int, "place in the group, from 0"]
    policy: Annotated[int, "policy version"]
    prompt_tokens: Annotated[int, "tokens of the prompt"]
    completion_tokens: Annotated[int, "tokens of the completion"]
    completion_blob: Annotated[str, "SHA-256 of the completion"]
    log_probabilities_blob: Annotated[str | None, "SHA-256 of the log-probabilities [completion_tokens], float32"]
    finish_reason: Annotated[str, "`stop`, `length` or what the engine said"]
    seed: Annotated[int | None, "seed of the sample"]
    temperature: Annotated[float, "sampling temperature"]


@fact("rollout.sampled", 2)
@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSampled:
    """One sampled answer of a policy."""

    rollout_id: Annotated[str, "the rollout"]
    group_id: Annotated[str, "its group"]
    problem_id: Annotated[str, "the problem"]
    ordinal: Annotated[int, "place in the group, from 0"]
    policy: Annotated[int | None, "policy version; null when unknown"]
    prompt_tokens: Annotated[int | None, "tokens of the prompt; null when unknown"]
    completion_tokens: Annotated[int | None, "tokens of the completion; null when unknown"]
    completion_blob: Annotated[str, "SHA-256 of the completion"]
    log_probabilities_blob: Annotated[str | None, "SHA-256 of the log-probabilities [completion_tokens], float32"]
    finish_reason: Annotated[str, "`stop`, `length` or what the engine said; empty when unknown"]
    seed: Annotated[int | None, "seed of the sample"]
    temperature: Annotated[float | None, "sampling temperature; null when unknown"]


@fact("group.closed", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClosed:
    """No further rollout of this group will come."""

    group_id: Annotated[str, "the group"]
    problem_id: Annotated[str, "the problem"]
    rollouts: Annotated[int, "rollouts that count"]
    reason: Annotated[str, "`complete` or why it ended early"]


@fact("pair.judged", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class PairJudged:
    """A judge compared two programs, blinded."""

    judgement_id: Annotated[str, "hash of judge, pair, order and ordinal"]
    problem_id: Annotated[str, "the problem"]
    first_program_id: Annotated[str, "shown first"]
    second_program_id: Annotated[str, "shown second"]
    judge: Annotated[str, "name and version of the judge"]
    ordinal: Annotated[int, "vote number, from 0"]
    verdict: Annotated[str, "`first`, `second`, `tie` or `unclear`"]
    kind: Annotated[str, "kind of improvement, in the judge's words; empty when none"]
