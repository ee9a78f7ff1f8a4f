"""What is to be done besides sending items. The scheduler says so; whoever asks it does it and tells it afterwards."""

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import anyio

from bulk.manifest.manifest import Job
from bulk.schedule.queues import Feed


@dataclass(frozen=True, slots=True)
class Skip:
    """Record that the items of this job are not tried, because what it needs did not succeed; then `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class Make:
    """Make the items of this job from results of others; then `made`."""

    job: Job


@dataclass(frozen=True, slots=True)
class Copy:
    """Only copies are left of this job: record each as that item ended which asks for the same; then `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class PassBy:
    """Record those superseded items that have joined; then `passed_by`."""

    job: Job


@dataclass(frozen=True, slots=True)
class SkipSome:
    """Record that single items are not tried, because what they need did not succeed: what `next_doomed` tells, until
    there is nothing; then `passed_by`."""


@dataclass(frozen=True, slots=True)
class Find:
    """Find the next item of this feed, which lies far on in its source; then `arrived`."""

    feed: Feed


JobTask: TypeAlias = Skip | SkipSome | Make | Copy | PassBy

T = TypeVar("T")


class TaskQueue(Generic[T]):
    """What is to be done, first come, first served, for one who waits for it."""

    def __init__(self) -> None:
        self._tasks: deque[T] = deque()
        self._changed = anyio.Event()

    def add(self, task: T) -> None:
        """Have this done after what was added before."""
        self._tasks.append(task)
        self.wake()

    def wake(self) -> None:
        """Have whoever waits look again."""
        self._changed.set()

    def next(self) -> T | None:
        """Return what is to be done next; None: nothing now."""
        return self._tasks.popleft() if self._tasks else None

    async def changed(self) -> None:
        """Wait for the next `add` or `wake`."""
        self._changed = anyio.Event()
        await self._changed.wait()
