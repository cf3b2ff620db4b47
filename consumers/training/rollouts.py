"""A batch of completions as facts: groups opened and closed, rollouts sampled, and the program in each.

Every id hashes the training run, the batch's given word and the place in it: the same batch gives the same ids, and no
clock or chance is asked here. Texts are durable before an event names them.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lapledger.consumers.training.code_blocks import extract_code
from lapledger.consumers.training.completions import Completion
from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import Event, GroupClosed, GroupOpened, ProgramAdded, RolloutSampled, TrainingDeclared
from lapledger.replay.criteria import Criterion

LONGEST_NAME = 300
"""Characters of a training run's name."""
Put = Callable[[Iterable[bytes]], list[str]]
"""Stores texts and returns their digests once they are durable."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training run as its user names it; settings are plain values, kept as they are given.

    UserError for a name that is not one line of up to LONGEST_NAME characters.
    """

    id: str
    model: str = "unknown"
    data: str = "unknown"
    seed: int = 0
    temperature: float | None = None  # None when nobody said
    settings: tuple[tuple[str, str | int | float], ...] = field(default=())

    def __post_init__(self) -> None:
        good = isinstance(self.id, str) and self.id.strip() and self.id.isprintable()
        if not good or len(self.id) > LONGEST_NAME:
            shown = repr(self.id)[:LONGEST_NAME]
            raise UserError(
                f"training {shown}: a training run's name is one line of 1 to {LONGEST_NAME} characters, and its"
                " programs are named after it; give for instance training='run1'"
            )


@dataclass(frozen=True, slots=True)
class Rolled:
    """A batch as facts: the events in order, and the program of each completion in the batch's order."""

    events: tuple[Event, ...]
    programs: tuple[ProgramAdded, ...]


def declared(training: Training, criterion: Criterion) -> TrainingDeclared:
    """The fact that states a training run."""
    stated = {} if training.temperature is None else {"temperature": training.temperature}
    settings = {**stated, **dict(training.settings)}
    return TrainingDeclared(
        training_id=training.id,
        model=training.model,
        data=training.data,
        environment=criterion.hash,
        reward=criterion.reward,
        seed=training.seed,
        settings=json.dumps(settings, sort_keys=True, ensure_ascii=False),
    )


def roll(training: Training, batch_id: str, batch: Sequence[tuple[str, Completion]], put: Put) -> Rolled:
    """The facts of a batch, which has a word that no other has. Completions [n] come with their problem's id.

    Those of one problem and key are a group, in the order of the batch. UserError when a group has two prompts.
    """
    groups: dict[tuple[str, Hashable], list[int]] = {}
    for index, (problem, completion) in enumerate(batch):
        groups.setdefault((problem, completion.group), []).append(index)
    events: list[Event] = []
    programs: dict[int, ProgramAdded] = {}
    for number, ((problem, _), indices) in enumerate(groups.items()):
        completions = tuple(batch[index][1] for index in indices)
        group = _Group(training, sha256_fields("group", training.id, batch_id, number, problem), problem, completions)
        added = group.programs(put)
        events += group.events(added, put)
        programs |= dict(zip(indices, added, strict=True))
    return Rolled(tuple(events), tuple(programs[index] for index in range(len(batch))))


def program_text(completion: Completion) -> str:
    """The program of a completion: its source where it has one, else the code block in its text that counts."""
    return extract_code(completion.text) if completion.source is None else completion.source


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class _Group:
    """One group of rollouts on one problem."""

    training: Training
    group: str
    problem: str
    completions: tuple[Completion, ...]

    def programs(self, put: Put) -> list[ProgramAdded]:
        """The program in each rollout."""
        sources = [_octets(program_text(completion)) for completion in self.completions]
        numbered = enumerate(zip(put(sources), map(len, sources), strict=True))
        return [self._program(ordinal, *source) for ordinal, source in numbered]

    def events(self, programs: Iterable[ProgramAdded], put: Put) -> list[Event]:
        """The group opens, its rollouts and programs follow, and it closes."""
        prompts = {completion.prompt for completion in self.completions}
        if len(prompts) > 1:
            raise UserError(
                f"a group on {self.problem!r} has {len(prompts)} prompts; a key names answers to one prompt"
            )
        stated = [_octets(prompt) for prompt in prompts if prompt is not None]
        prompt, *answers = put([*(stated or [b""]), *(_octets(completion.text) for completion in self.completions)])
        known = [n for n, completion in enumerate(self.completions) if completion.log_probabilities is not None]
        packed = (np.array(self.completions[n].log_probabilities, "<f4").tobytes() for n in known)
        logs = dict(zip(known, put(packed), strict=True)) if known else {}
        sampled = [
            self._sampled(n, completion, blob, logs.get(n))
            for n, (completion, blob) in enumerate(zip(self.completions, answers, strict=True))
        ]
        return [self._opening_event(prompt if stated else None), *sampled, *programs, self._closed()]

    def rollout(self, ordinal: int) -> str:
        """The id of a rollout."""
        return sha256_fields("rollout", self.group, ordinal)

    def _opening_event(self, prompt: str | None) -> GroupOpened:
        """The group's first fact; its policy is the oldest of its rollouts, unknown when one of them is."""
        policies = [completion.policy for completion in self.completions]
        return GroupOpened(
            group_id=self.group,
            training_id=self.training.id,
            problem_id=self.problem,
            policy=None if None in policies else min(p for p in policies if p is not None),
            size=len(self.completions),
            prompt_blob=prompt,
        )

    def _sampled(self, ordinal: int, completion: Completion, blob: str, logs: str | None) -> RolloutSampled:
        return RolloutSampled(
            rollout_id=self.rollout(ordinal),
            group_id=self.group,
            problem_id=self.problem,
            ordinal=ordinal,
            policy=completion.policy,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.tokens,
            completion_blob=blob,
            log_probabilities_blob=logs,
            finish_reason=completion.finish_reason,
            seed=None,
            temperature=self.training.temperature,
        )

    def _program(self, ordinal: int, source: str, size: int) -> ProgramAdded:
        """The program in a rollout; its model is the training run, at this step where it is known."""
        stem, policy = self.rollout(ordinal)[:12], self.completions[ordinal].policy
        return ProgramAdded(
            problem_id=self.problem,
            program_id=f"{self.problem}/{stem}.{source[:12]}",
            name=f"{stem}.py",
            model=self.training.id if policy is None else f"{self.training.id}-{policy}",
            label="",
            language="python3",
            source_blob=source,
            source_bytes=size,
            rollout_id=self.rollout(ordinal),
        )

    def _closed(self) -> GroupClosed:
        count = len(self.completions)
        return GroupClosed(group_id=self.group, problem_id=self.problem, rollouts=count, reason="complete")
