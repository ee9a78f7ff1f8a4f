"""What the log says of a store that is out of reach: that it is, rarely again while it stays so, and its return."""

import logging
from collections.abc import Callable

log = logging.getLogger("bulk.cluster")

AGAIN_S = 60.0
"""How long the log says nothing more of a store that is still, or again, out of reach (seconds)."""


class Outage:
    """Counts the calls in vain of all parts of a worker as one outage; `now` returns monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began: float | None = None
        self._told_at = float("-inf")
        self._is_told = False

    def goes_on(self, why: object) -> None:
        """Note that a call was in vain, and tell so, unless that was told lately."""
        now = self._now()
        if self._began is None:
            self._began = now
        if now >= self._told_at + AGAIN_S:
            log.warning("%s", why)
            self._told_at, self._is_told = now, True

    def is_over(self) -> None:
        """Note that the store has answered, and tell that it is in reach again, if the log has said that it was not."""
        if self._is_told and self._began is not None:
            log.warning("the store is in reach again, after %.0f s", self._now() - self._began)
        self._began, self._is_told = None, False
