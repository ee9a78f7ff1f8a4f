"""Runs that a worker leaves alone for a while, because something is out of reach, and the words about it in its log."""

import logging
from collections.abc import Callable

log = logging.getLogger("bulk.cluster")

AGAIN_S = 30.0
"""How long a worker leaves a run alone that it can't work on; no run is left alone for longer (seconds)."""

SOON_S = 1.0
"""How long a worker leaves a run alone the first time that the store or the platform was out of reach (seconds); each
time that follows is twice as long."""

TOLD_S = 60.0
"""How long the log says nothing more of a store that is still, or again, out of reach (seconds)."""


class LeftAlone:
    """The runs that a worker leaves alone, by their numbers; moments are monotonic seconds."""

    def __init__(self) -> None:
        self._last_s: dict[int, float] = {}
        self._until: dict[int, float] = {}

    def leave(self, run: int, first_s: float, now: float) -> None:
        """Leave a run alone from now on.

        Args:
            first_s: for how long, if this is the first time since `went` (seconds); it doubles each time after that.
        """
        last_s = self._last_s.get(run)
        self._last_s[run] = min(AGAIN_S, first_s if last_s is None else 2.0 * last_s)
        self._until[run] = now + self._last_s[run]

    def went(self, run: int) -> None:
        """Note that the run could be worked on."""
        self._last_s.pop(run, None)
        self._until.pop(run, None)

    def has(self, run: int, now: float) -> bool:
        """Return whether the run is left alone now."""
        return now < self._until.get(run, now)


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
        if now >= self._told_at + TOLD_S:
            log.warning("%s", why)
            self._told_at, self._is_told = now, True

    def is_over(self) -> None:
        """Note that the store has answered, and tell that it is in reach again, if the log has said that it was not."""
        if self._is_told and self._began is not None:
            log.warning("the store is in reach again, after %.0f s", self._now() - self._began)
        self._began, self._is_told = None, False
