"""Joins completions that a trainer hands over one by one to groups, and has each group scored once it is whole.

Threads and coroutines may share a gatherer, processes cannot: one of them would wait forever for what another holds,
so a group that does not become whole in time is refused, and nothing of it is appended.
"""

import asyncio
import threading
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from lapledger.consumers.training.completions import Completion
from lapledger.consumers.training.scoring import Score
from lapledger.ledger.errors import UserError

Reward = Future[float | None]


@dataclass(slots=True, eq=False)
class _Group:
    """A group as far as it has arrived: of `size` completions, each with the reward that it waits for."""

    number: int
    size: int
    members: list[tuple[Completion, Reward]] = field(default_factory=list)

    def refuse(self, error: BaseException) -> None:
        """Gives every member an error for its reward."""
        for _, reward in self.members:
            reward.set_exception(error)


class Gatherer:
    """Groups by key: completions of one problem and key belong together until as many as asked for have arrived.

    The next one with that key begins a group anew. Groups that become whole while others are scored are scored
    together, in one campaign; an error of that call is the answer to all of them.
    """

    def __init__(self, score: Score, *, patience: float) -> None:
        """`patience` is how many seconds a completion waits for the rest of its group. Nothing is started yet."""
        self._score, self._patience = score, patience
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, Hashable], _Group] = {}
        self._complete: list[_Group] = []
        self._begun = 0
        self._expiry_scheduled = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lapledger")

    async def reward(self, completion: Completion, size: int) -> float | None:
        """The reward of a completion of a group of `size`, once all of it was scored; None where it is undecided.

        UserError when the group does not become whole in time, or its members disagree on its size; and what the
        scoring raises.
        """
        mine = self.join(completion, size)
        answer = asyncio.wrap_future(mine)
        done, _ = await asyncio.wait([answer], timeout=self._patience)
        if not done:
            self._give_up((completion.problem, completion.group), mine)
        return await answer

    def join(self, completion: Completion, size: int) -> Reward:
        """Adds a completion to its group and returns at once; the reward comes when the group was scored."""
        if size < 1:
            raise UserError(f"a group has at least one answer, not {size}; give the number that the trainer samples")
        mine: Reward = Future()
        mine.set_running_or_notify_cancel()  # whoever stops waiting leaves the others their answers
        key = completion.problem, completion.group
        with self._lock:
            if not self._expiry_scheduled:
                self._expiry_scheduled = True
                self._thread.submit(self._expire_later)
            if key not in self._waiting:
                self._begun += 1
                self._waiting[key] = _Group(self._begun, size)
            group = self._waiting[key]
            if group.size != size:
                raise UserError(f"group {key!r} is said to have {group.size} and {size} answers; give it one number")
            group.members.append((completion, mine))
            if len(group.members) == size:
                self._complete.append(self._waiting.pop(key))
                self._thread.submit(self._score_complete)
        return mine

    def _expire_later(self) -> None:
        """Has nothing scored, so that what refuses every batch refuses the first answers, before a group is whole."""
        try:
            self._score(())
        except BaseException as error:  # noqa: BLE001  (each waiting caller gets it)
            with self._lock:
                groups = [*self._waiting.values(), *self._complete]
                self._waiting, self._complete, self._expiry_scheduled = {}, [], False
            for group in groups:
                group.refuse(error)

    def _give_up(self, key: tuple[str, Hashable], mine: Reward) -> None:
        """Refuses a group that is still not whole."""
        with self._lock:
            group = self._waiting.get(key)
            if group is None or all(reward is not mine for _, reward in group.members):
                return  # it became whole meanwhile
            del self._waiting[key]
        error = UserError(
            f"{len(group.members)} of the {group.size} answers of group {key!r} came in {self._patience:g} s: let one"
            " process see all of a group (verl: reward.num_workers=1), and n be the trainer's"
        )
        group.refuse(error)

    def _score_complete(self) -> None:
        """Scores all groups that are whole by now; there are none when an earlier call took them along."""
        with self._lock:
            groups, self._complete = self._complete, []
        members = [(replace(c, group=group.number), reward) for group in groups for c, reward in group.members]
        if not members:
            return
        try:
            values = self._score([completion for completion, _ in members])
        except BaseException as error:  # noqa: BLE001  (each waiting caller gets it)
            for group in groups:
                group.refuse(error)
        else:
            for (_, reward), value in zip(members, values, strict=True):
                reward.set_result(value)
