"""Threads for blocking work of a run on its disk: ledger, results, bodies, kept answers.

If the event loop and a thread want the same core, the system gives each its turn, and the loop is late by the thread's
turn: with kept answers by 24 ms (99%) instead of 17. So these threads step back; measured:
benchmarks/notes/changes.md.
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
"""Most threads (count): one commits, one looks ahead, the others write bodies. They are started when needed."""

NICENESS = 10
"""How much less urgent the threads are than the event loop: they get a tenth of its share of a core that both want."""


def _step_back() -> None:
    if sys.platform == "linux":  # elsewhere this would change the whole process
        with suppress(OSError):  # where it is forbidden, the thread stays as urgent as all others
            os.nice(NICENESS)


_threads: ThreadPoolExecutor


def _begin() -> None:
    global _threads  # noqa: PLW0603 - one pool for each process
    _threads = ThreadPoolExecutor(THREADS, "bulk-disk", _step_back)


_begin()
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_begin)  # a forked process has the pool, but none of its threads


async def thread_disk(call: Callable[[], None]) -> None:
    """Run `call` in a worker thread; this is the ordinary `Disk`.

    A cancellation does not abandon the call: a commit is completed, not torn.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    with anyio.CancelScope(shield=True):
        await asyncio.get_running_loop().run_in_executor(_threads, call)


async def beside(disk: Disk, call: Callable[[], T]) -> T:
    """Return the result of `call`, which blocks too long for the event loop and is run by `disk`."""
    found: list[T] = []
    await disk(lambda: found.append(call()))
    return found[0]
