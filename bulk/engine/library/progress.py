"""Progress of a run for a callback of the caller's. What it raises ends the run, and comes out of `run` or `map`."""

import logging
from collections.abc import Callable
from typing import Self, TypeAlias

import anyio

from bulk.status import RunStatus

Progress: TypeAlias = Callable[[RunStatus], None]
"""Called with where the run stands, several times a second, in the thread that runs the engine or called `bulk.run`."""

log = logging.getLogger("bulk.engine.library")


class CallbackDisplay:
    """A display that calls back. With None it shows nothing.

    Attributes:
        scope: of the run, which ends where the callback raises. failure: what it raised.
    """

    def __init__(self, callback: Progress | None, scope: anyio.CancelScope) -> None:
        self._callback, self.scope = callback, scope
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, status: RunStatus) -> None:
        """Tell the callback."""
        if self._callback is None or self.failure is not None:
            return
        try:
            self._callback(status)
        except Exception as failure:  # noqa: BLE001 - it is the caller's own, and is raised again where he waits
            self.failure = failure
            self.scope.cancel()

    def note(self, text: str) -> None:
        """Write a note to the log of the library's user."""
        log.info("%s", text)
