"""Tasks besides sending items. The scheduler names them; its caller does each and tells the scheduler afterwards."""

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import anyio

from bulk.manifest.manifest import Job
from bulk.schedule.queues import Feed


@dataclass(frozen=True, slots=True)
class Skip:
    """Record that the items of this job are not tried, because a needed job did not succeed; then call `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class Make:
    """Make the items of this job from results of others; then call `made`."""

    job: Job


@dataclass(frozen=True, slots=True)
class Copy:
    """Only copies are left of this job: record each with the outcome of the item it copies; then call `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class PassBy:
    """Record the outcomes of superseded items that have joined; then call `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class SkipSome:
    """Record that single items are not tried, because items that they need did not succeed: those that `next_doomed`
    returns, until it returns None; then call `passed_by`."""


@dataclass(frozen=True, slots=True)
class Find:
    """Find the next item of this feed, which lies far on in its source; then call `arrived`."""

    feed: Feed


JobTask: TypeAlias = Skip | SkipSome | Make | Copy | PassBy

T = TypeVar("T")


class TaskQueue(Generic[T]):
    """Tasks that are to be done, in the order in which they came, for one waiting consumer."""

    def __init__(self) -> None:
        self._tasks: deque[T] = deque()
        self._changed = anyio.Event()

    def add(self, task: T) -> None:
        """Add a task behind those that were added before."""
        self._tasks.append(task)
        self.wake()

    def wake(self) -> None:
        """Have the consumer look again."""
        self._changed.set()

    def next(self) -> T | None:
        """Return the next task; None: there is none now."""
        return self._tasks.popleft() if self._tasks else None

    async def changed(self) -> None:
        """Wait for the next `add` or `wake`."""
        self._changed = anyio.Event()
        await self._changed.wait()
