"""Who pauses for a reason that no budget, lane or list tells, and until when: the status says it.

Pure; monotonic times come in. Source: design.md §4 (everything that waits says for what and until when).
"""

import contextlib
from collections.abc import Iterator
from enum import StrEnum

SHORTEST_TOLD_S = 1.0
"""A shorter pause is over before anybody has read of it (seconds)."""


class WaitReason(StrEnum):
    """What the status says of a pause."""

    NOT_VISIBLE = "just created, not visible yet"
    MAY_ARRIVE = "an earlier write may still arrive"
    ROUND = "next try after a conflict or a lost answer"
    BUSY = "next try of what the platform is busy with"
    UNEXPLAINED = "next try after a refusal without a reason"
    READ = "next try of a read"
    LOOK = "next look at what takes its time"


class WaitReasons:
    """Those that last right now."""

    def __init__(self) -> None:
        self._lasting: dict[object, tuple[WaitReason, float]] = {}

    @contextlib.contextmanager
    def told(self, why: WaitReason | None, seconds: float, now: float) -> Iterator[None]:
        """One of `seconds` from `now` on, for the time of the block. `why`: None where something else tells it."""
        if why is None or seconds < SHORTEST_TOLD_S:
            yield
            return
        pause = object()
        self._lasting[pause] = (why, now + seconds)
        try:
            yield
        finally:
            del self._lasting[pause]

    def waits(self) -> list[tuple[WaitReason, float, int]]:
        """Each reason, when the last one of it is over (monotonic seconds), and how many there are."""
        found: dict[WaitReason, tuple[float, int]] = {}
        for why, until in self._lasting.values():
            last, count = found.get(why, (until, 0))
            found[why] = (max(last, until), count + 1)
        return [(why, until, count) for why, (until, count) in found.items()]
