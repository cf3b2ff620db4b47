"""Rewards as a pure function, code out of completions, and a batch of completions as facts."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.consumers.training.completions import Completion, prompt_text, text_of
from lapledger.consumers.training.rollouts import Training, declared, roll
from lapledger.consumers.training.scoring import rewards
from lapledger.ledger.codec.canonical import blob_digest, sha256_fields
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import GroupClosed, GroupOpened, ProgramAdded, RolloutSampled
from lapledger.replay import measurements
from lapledger.replay.criteria import Criterion, preset
from lapledger.replay.measurements import Outcome, ProblemMeasurements

MS = 1_000_000
SOURCES = ("a = 1\n", "b = 2\n", "c = 3\n", "a = 1\n")


def problem(outcome: list[list[int]], ms: list[int]) -> ProblemMeasurements:
    """Four programs on one test of every kind, the last one a copy of the first; the first three are references."""
    tests = measurements.Tests(
        ("t",), *(np.ones(1, dtype=np.bool_) for _ in range(3)), *(np.zeros(1, dtype=np.int64) for _ in range(4))
    )
    wall = np.array(ms, dtype=np.int64)[:, None, None] * MS
    return ProblemMeasurements(
        problem="p",
        campaign="c",
        tests=tests,
        programs=("p/0", "p/1", "p/2", "p/3"),
        models=("human",) * 3 + ("model",),
        labels=("accepted",) * 4,
        candidate=np.ones(4, dtype=np.bool_),
        reference=np.array([True, True, True, False]),
        duplicate=np.array([int(blob_digest(s.encode())[:15], 16) for s in SOURCES], dtype=np.int64),
        outcome=np.array(outcome, dtype=np.int8),
        wall_ns=wall,
        cpu_ns=wall,
        startup_ns=np.zeros((4, 1), dtype=np.int64),
        limit_ns=np.full((4, 1), 10_000 * MS, dtype=np.int64),
    )


OK, WRONG, MISSING = int(Outcome.OK), int(Outcome.WRONG_ANSWER), int(Outcome.MISSING)


def test_rewards_by_id_and_by_source():
    """Among references of 2 and 3 ms: 1 ms ranks 1st (q 0), 2 ms among 1 and 3 in the middle (q 1/2), 3 ms last (q 1).

    `collapsed`, `continuous`: e = 1 - 2 q. The model's copy of the first program gets the first one's reward.
    """
    m = problem([[OK]] * 4, [1, 2, 3, 1])
    criterion = Criterion(reading="score", reward="collapsed", shape="continuous")
    assert rewards(["p/0", "p/1", "p/2", "p/3"], [m], criterion) == [1.0, 0.0, -1.0, 1.0]
    assert rewards([SOURCES[1], SOURCES[0], "d = 4\n"], [m], criterion) == [0.0, 1.0, None]
    assert rewards([], [m], criterion) == []


def test_what_was_not_run_is_none_and_what_is_wrong_is_not():
    """A missing result is undecided, never -1."""
    m = problem([[OK], [WRONG], [OK], [MISSING]], [1, 2, 3, 1])
    assert rewards(["p/1", "p/3"], [m], preset("rlvr")) == [-1.0, None]


def test_multitask_requests_for_groups():
    """Even groups are paid for correctness, odd ones for speed; without a group nothing is decided."""
    m = problem([[OK], [OK], [OK], [OK]], [1, 2, 3, 9])
    criterion = Criterion(tau="30", reward="multitask")
    groups = {"p/0": 0, "p/2": 1}
    assert rewards(["p/0", "p/2"], [m], criterion, groups=groups) == [1.0, -1.0]
    assert rewards(["p/0"], [m], criterion) == [None]


def test_a_source_in_two_groups_has_no_one_reward():
    """9 ms against 1, 2 and 3 is right and slow: +1 in an even group, -1 in an odd one; the source alone says neither.

    By id each has its own.
    """
    m = problem([[OK]] * 4, [1, 2, 3, 9])
    m = dataclasses.replace(m, duplicate=m.duplicate[[0, 1, 2, 2]], reference=np.array([True, True, False, False]))
    m = dataclasses.replace(m, wall_ns=m.wall_ns[[0, 1, 3, 3]], cpu_ns=m.cpu_ns[[0, 1, 3, 3]])
    criterion = Criterion(tau="30", reward="multitask")
    groups = {"p/2": 0, "p/3": 1}
    assert rewards(["p/2", "p/3", SOURCES[2]], [m], criterion, groups=groups) == [1.0, -1.0, None]
    groups = {"p/2": 1, "p/3": 1}
    assert rewards(["p/2", "p/3", SOURCES[2]], [m], criterion, groups=groups) == [-1.0, -1.0, -1.0]


def test_conversations():
    """The last assistant message's content, whole or in parts; two prompts are equal when their messages are."""
    assert text_of([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]) == "b"
    assert text_of([{"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "image"}]}]) == "b"
    assert [text_of(None), text_of([]), text_of([{"content": None}])] == ["", "", ""]
    assert prompt_text([{"role": "u", "content": "a"}]) == prompt_text([{"content": "a", "role": "u"}])
    parts = ({"content": [{"type": "image", "image": object()}], "turns": np.arange(2)} for _ in range(2))
    assert {prompt_text([part]) for part in parts} == {
        '[{"content": [{"image": "<object>", "type": "image"}], "turns": [0, 1]}]'
    }


TRAINING = Training("run", "m", temperature=0.5)


def put(items):
    """Digests of texts that are kept nowhere."""
    return [blob_digest(item) for item in items]


def answer(problem, group, text, **seen):
    """A completion; what is not told is unknown."""
    return Completion(problem=problem, group=group, text=text, **seen)


SAME = {"prompt": "add", "policy": 3, "tokens": 5, "finish_reason": "stop"}


def rolled(label="w"):
    """Two groups, interleaved: two completions of one prompt, and between them one of another problem."""
    first, last = (answer("p", 7, "```python\nx\n```", **SAME) for _ in range(2))
    return roll(TRAINING, label, [("p.1", first), ("q.1", answer("q", 7, "?")), ("p.1", last)], put)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a" * 301, None])
def test_a_training_run_has_a_name(name):
    """It is part of every program's model."""
    with pytest.raises(UserError, match="one line of 1 to 300 characters"):
        Training(name)
    assert Training("a" * 300).id == "a" * 300


def test_a_batch_as_facts():
    """Groups open, their rollouts and programs follow, and they close; ids hash run, word and place."""
    events = rolled().events
    kinds = [GroupOpened, RolloutSampled, RolloutSampled, ProgramAdded, ProgramAdded, GroupClosed]
    assert [type(e) for e in events[:6]] == kinds
    assert [type(e) for e in events[6:]] == [GroupOpened, RolloutSampled, ProgramAdded, GroupClosed]
    group = sha256_fields("group", "run", "w", 0, "p.1")
    opening, first, _, program, *_ = events
    assert (opening.group_id, opening.size, opening.policy, opening.prompt_blob) == (group, 2, 3, blob_digest(b"add"))
    assert first.rollout_id == program.rollout_id == sha256_fields("rollout", group, 0)
    assert (first.completion_tokens, first.prompt_tokens, first.finish_reason) == (5, None, "stop")
    assert (first.policy, first.temperature) == (3, 0.5)
    assert program.source_blob == blob_digest(b"x\n")
    assert program.program_id == f"p.1/{first.rollout_id[:12]}.{program.source_blob[:12]}"
    assert (program.model, program.source_bytes) == ("run-3", 2)


def test_what_the_trainer_does_not_report_stays_unknown():
    """No prompt, step, count, temperature or reason is made up; the model is the training run alone."""
    (opening, sampled, program, closed) = roll(Training("run"), "w", [("q", answer("q", None, "?"))], put).events
    assert (opening.prompt_blob, opening.policy) == (None, None)
    seen = (sampled.policy, sampled.prompt_tokens, sampled.completion_tokens, sampled.temperature)
    assert seen == (None, None, None, None)
    assert (sampled.finish_reason, program.model, closed.reason) == ("", "run", "complete")
    assert json.loads(declared(Training("run"), preset("rlvr")).settings) == {}
    assert json.loads(declared(TRAINING, preset("rlvr")).settings) == {"temperature": 0.5}


@given(st.permutations([(problem, key) for problem in "pq" for key in (1, 1, 1, "two", "two")]))
def test_a_key_makes_a_group_wherever_its_members_lie(order):
    """Five answers to each of two problems, three and two of a key: four groups, each closed with all of its members.

    Programs come in the order of the batch, ordinals in the order within the group.
    """
    result = roll(TRAINING, "w", [(p, answer(p, key, f"{p} {key}")) for p, key in order], put)
    opening = {e.group_id: (e.problem_id, e.size) for e in result.events if isinstance(e, GroupOpened)}
    closed = {e.group_id: (e.problem_id, e.rollouts) for e in result.events if isinstance(e, GroupClosed)}
    assert opening == closed
    assert sorted(opening.values()) == [("p", 2), ("p", 3), ("q", 2), ("q", 3)]
    assert [program.problem_id for program in result.programs] == [problem for problem, _ in order]
    rollouts = {e.rollout_id: e for e in result.events if isinstance(e, RolloutSampled)}
    groups = {}
    for location, program in enumerate(result.programs):
        rollout = rollouts[program.rollout_id]
        key = order[location]
        assert rollout.completion_blob == blob_digest("{} {}".format(*key).encode())
        groups.setdefault((key, rollout.group_id), []).append(rollout.ordinal)
    assert len(groups) == 4
    assert all(ordinals == list(range(len(ordinals))) for ordinals in groups.values())


def test_the_policy_of_a_group_is_its_oldest():
    """Of 4 and 3 it is 3; of 4 and unknown it is unknown."""
    for policies, due in (((4, 3), 3), ((4, None), None)):
        batch = [("p", answer("p", 0, "", policy=policy)) for policy in policies]
        assert roll(TRAINING, "w", batch, put).events[0].policy == due


def test_a_group_with_two_prompts_is_refused():
    """The key was none of a prompt."""
    batch = [("p", answer("p", 0, "", prompt=prompt)) for prompt in ("a", "b")]
    with pytest.raises(UserError, match="2 prompts"):
        roll(TRAINING, "w", batch, put)


def test_the_same_batch_has_the_same_ids_and_another_has_others():
    """No clock and no chance."""
    assert rolled().events == rolled().events
    ids = [{e.rollout_id for e in rolled(label).events if isinstance(e, RolloutSampled)} for label in ("w", "v")]
    assert not ids[0] & ids[1]
