"""Blocking work of a run on its disk: ledger, results, bodies, kept answers. Elsewhere than in the event loop.

Where the loop and a thread want the same core, the system gives each its turn, and the loop is late by the thread's:
with kept answers by 24 ms (99%) instead of 17. So these threads step back; measured: benchmarks/notes/changes.md.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeAlias, TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")

Disk: TypeAlias = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a blocking function elsewhere; a simulation runs it in place."""

THREADS = 32
"""Most at once (count): one commits, one looks ahead, the others write bodies. They are begun when they are needed."""

NICENESS = 10
"""How much less urgent they are than the event loop: a tenth of its share of a core that both want."""


def _step_back() -> None:
    if sys.platform == "linux":  # elsewhere it would be the whole process
        with suppress(OSError):  # forbidden: it goes on as urgent as all else
            os.nice(NICENESS)


_THREADS = ThreadPoolExecutor(THREADS, "bulk-disk", _step_back)


async def thread_disk(call: Callable[[], None]) -> None:
    """Do it in a worker thread, as the ordinary disk. It is not abandoned when cancelled: a commit is ended,
    not torn.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    with anyio.CancelScope(shield=True):
        await asyncio.get_running_loop().run_in_executor(_THREADS, call)


async def beside(disk: Disk, call: Callable[[], T]) -> T:
    """Return what `call` returns; it blocks for so long that it must not hold the event loop."""
    found: list[T] = []
    await disk(lambda: found.append(call()))
    return found[0]
