"""A batch of completions as facts: groups opened and closed, rollouts sampled, and the program in each.

Every id hashes the training run, the batch's given word and the place in it: the same batch gives the same ids, and no
clock or chance is asked here. Texts are durable before an event names them.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from consumers.completions import Completion, extract_code
from ledger.digests import sha256_words
from ledger.events import Event, GroupClosed, GroupOpened, ProgramAdded, RolloutSampled, TrainingDeclared
from replay.criteria import Criterion

Put = Callable[[Iterable[bytes]], list[str]]
"""Stores texts and returns their digests once they are durable."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training run as its user names it; settings are plain values, kept as they are given."""

    id: str
    model: str = "unknown"
    data: str = "unknown"
    seed: int = 0
    temperature: float = 1.0
    settings: tuple[tuple[str, str | int | float], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Batch:
    """One call of a trainer: a word that no other call has, and the policy's version, its optimizer step."""

    word: str
    policy: int


@dataclass(frozen=True, slots=True)
class Rolled:
    """A batch as facts: the events in order, and the program of each completion."""

    events: tuple[Event, ...]
    programs: tuple[ProgramAdded, ...]


def declared(training: Training, criterion: Criterion) -> TrainingDeclared:
    """The fact that states a training run."""
    settings = {"temperature": training.temperature, **dict(training.settings)}
    return TrainingDeclared(
        training_id=training.id,
        model=training.model,
        data=training.data,
        environment=criterion.hash,
        reward=criterion.reward,
        seed=training.seed,
        settings=json.dumps(settings, sort_keys=True, ensure_ascii=False),
    )


def roll(training: Training, batch: Batch, placed: Sequence[tuple[str, Completion]], put: Put) -> Rolled:
    """The facts of a batch. Completions [n] come with their problem's id; neighbours of one prompt make a group."""
    events: list[Event] = []
    programs: list[ProgramAdded] = []
    runs = groupby(placed, key=lambda pair: (pair[0], pair[1].prompt))
    for place, ((problem, prompt), members) in enumerate(runs):
        group = sha256_words("group", training.id, batch.word, place, problem)
        found = _Group(training, batch, group, problem)
        completions = [completion for _, completion in members]
        sources = [extract_code(completion.text) for completion in completions]
        texts = [prompt, *(completion.text for completion in completions), *sources]
        blobs = put([text.encode("utf-8", "surrogatepass") for text in texts])
        answers, codes = blobs[1 : 1 + len(completions)], blobs[1 + len(completions) :]
        sizes = [len(source.encode("utf-8", "surrogatepass")) for source in sources]
        added = [found.program(n, *pair) for n, pair in enumerate(zip(codes, sizes, strict=True))]
        events.append(found.opened(len(completions), blobs[0]))
        events += [found.sampled(n, *pair) for n, pair in enumerate(zip(completions, answers, strict=True))]
        events += [*added, found.closed(len(completions))]
        programs += added
    return Rolled(tuple(events), tuple(programs))


@dataclass(frozen=True, slots=True)
class _Group:
    """One group of rollouts on one problem."""

    training: Training
    batch: Batch
    group: str
    problem: str

    def rollout(self, ordinal: int) -> str:
        """The id of a rollout."""
        return sha256_words("rollout", self.group, ordinal)

    def opened(self, size: int, prompt: str) -> GroupOpened:
        """The group's first fact."""
        return GroupOpened(
            group_id=self.group,
            training_id=self.training.id,
            problem_id=self.problem,
            policy=self.batch.policy,
            size=size,
            prompt_blob=prompt,
        )

    def sampled(self, ordinal: int, completion: Completion, blob: str) -> RolloutSampled:
        """One rollout; a count that the trainer did not tell is -1."""
        return RolloutSampled(
            rollout_id=self.rollout(ordinal),
            group_id=self.group,
            problem_id=self.problem,
            ordinal=ordinal,
            policy=self.batch.policy,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.tokens,
            completion_blob=blob,
            log_probabilities_blob=None,
            finish_reason=completion.finish_reason,
            seed=None,
            temperature=self.training.temperature,
        )

    def program(self, ordinal: int, source: str, size: int) -> ProgramAdded:
        """The program in a rollout; its maker is the training run at this step."""
        stem = self.rollout(ordinal)[:12]
        return ProgramAdded(
            problem_id=self.problem,
            program_id=f"{self.problem}/{stem}.{source[:12]}",
            name=f"{stem}.py",
            maker=f"{self.training.id}-{self.batch.policy}",
            label="",
            language="python3",
            source_blob=source,
            source_bytes=size,
            rollout_id=self.rollout(ordinal),
        )

    def closed(self, rollouts: int) -> GroupClosed:
        """The group's last fact."""
        return GroupClosed(group_id=self.group, problem_id=self.problem, rollouts=rollouts, reason="complete")
