"""Work that goes on after the answer, such as renames: each is a task of one group that ends with the server.

Work that has to survive a restart is written to the state first; the area's `start` takes it up again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

LOG = logging.getLogger("bulk.sandbox")


class Background:
    """Starts work for which no request waits. A task that fails is logged and harms no other task."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Begin `work()` now; it is cancelled when the server ends. `name` is its name in the log."""
        task = self._group.create_task(self._guarded(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Cancel all tasks that have not ended."""
        for task in self._tasks:
            task.cancel()

    async def _guarded(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:
            LOG.exception("background work failed: %s", name)


@asynccontextmanager
async def background() -> AsyncIterator[Background]:
    """Lend the group in which background work runs; at the end of the block its remaining tasks are cancelled.

    This is asyncio's group and not anyio's, because groups of anyio must end in the reverse order of their beginning,
    and two sandboxes of one program need not. An exception of the block leaves as itself, not within a group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            running = Background(group)
            try:
                yield running
            finally:
                running.stop()
    except BaseExceptionGroup as raised:
        if len(raised.exceptions) == 1:
            raise raised.exceptions[0] from None
        raise
