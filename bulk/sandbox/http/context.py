"""The parts of one running sandbox, which every area function can reach.

An area keeps its own long-lived things (a store of git repositories, a queue of deliveries) here by their type: `put`
in the area's `start`, `get` in its functions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, cast

import anyio.to_thread

from bulk.sandbox.background import Background
from bulk.sandbox.clock import Clock
from bulk.sandbox.http.budgets import Budgets
from bulk.sandbox.http.media import Vendor
from bulk.sandbox.http.refusals import Refused
from bulk.sandbox.settings import Settings
from bulk.sandbox.store.apps import Apps
from bulk.sandbox.store.state import State

T = TypeVar("T")


class Blocking(Protocol):
    """How work that blocks (git, disk) is done without holding up the event loop."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return what `work()` returns or raises."""


async def in_thread(work: Callable[[], T]) -> T:
    """Call `work` in a worker thread: the default."""
    return await anyio.to_thread.run_sync(work)


async def inline(work: Callable[[], T]) -> T:
    """Call `work` at once, on the event loop: for virtual time, where no thread may run."""
    return work()


class Writing:
    """The things that are being written at this moment."""

    def __init__(self) -> None:
        self._keys: set[Hashable] = set()

    @asynccontextmanager
    async def claim(self, key: Hashable, refusal: Refused, pause: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Hold `key` from here to the end of the block, the request's latency included.

        Raises:
            Refused: another request holds the key; the error raised is `refusal`.
        """
        if key in self._keys:
            raise refusal
        self._keys.add(key)
        try:
            await pause()
            yield
        finally:
            self._keys.discard(key)


@dataclass(slots=True)
class Context:
    """One running sandbox, as its areas see it.

    Attributes:
        settings: the settings with which it was started.
        clock: the only source of time.
        directory: the state directory, for the areas' own files.
        state: users, organizations, repositories and the database.
        apps: Apps and their installations.
        vendor: the names in headers and media types.
        budgets: the rate limits.
        background: for work that goes on after the answer.
        blocking: for work that would hold up the event loop.
        writing: the things that are being written at this moment.
    """

    settings: Settings
    clock: Clock
    directory: Path
    state: State
    apps: Apps
    vendor: Vendor
    budgets: Budgets
    background: Background
    blocking: Blocking = in_thread
    writing: Writing = field(default_factory=Writing)
    _things: dict[type, object] = field(default_factory=dict)

    def put(self, thing: object) -> None:
        """Keep an area's own long-lived thing, found again by its type."""
        self._things[type(thing)] = thing

    def get(self, kind: type[T]) -> T:
        """Return the thing of that type (KeyError: no area put one)."""
        return cast("T", self._things[kind])

    def find(self, kind: type[T]) -> T | None:
        """Return the thing of that type; None: no area put one."""
        return cast("T | None", self._things.get(kind))
