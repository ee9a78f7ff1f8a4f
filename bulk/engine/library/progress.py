"""Progress of a run for a callback of the caller. An exception of the callback ends the run and reaches the caller."""

import logging
from collections.abc import Callable
from typing import TypeAlias

import anyio

from bulk.status import RunStatus, Silence

Progress: TypeAlias = Callable[[RunStatus], None]
"""Called with the status of the run several times a second, in the thread of the engine or of the call `bulk.run`."""

log = logging.getLogger("bulk.engine.library")


class CallbackDisplay(Silence):
    """A display that passes each status to a callback. Without a callback (None) it shows nothing.

    Attributes:
        scope: the cancel scope of the run; it is cancelled when the callback raises.
        failure: the exception that the callback raised; None: none.
    """

    def __init__(self, callback: Progress | None, scope: anyio.CancelScope) -> None:
        self._callback, self.scope = callback, scope
        self.failure: BaseException | None = None

    def update(self, status: RunStatus) -> None:
        """Call the callback with the status."""
        if self._callback is None or self.failure is not None:
            return
        try:
            self._callback(status)
        except BaseException as failure:  # noqa: BLE001 - the caller's own, which is raised again to the caller
            self.failure = failure
            self.scope.cancel()

    def note(self, text: str) -> None:
        """Write a note to the log of the library's user."""
        log.info("%s", text)
