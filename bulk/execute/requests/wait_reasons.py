"""The pauses whose reason no budget, lane or list tells, and when they end: the status reports them.

Pure; monotonic times come in. Source: design.md §4 (everything that waits says for what and until when).
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from bulk.status import WaitKind

SHORTEST_TOLD_S = 1.0
"""Shorter pauses are not reported: they are over before anybody has read of them (seconds)."""


class WaitReason(StrEnum):
    """What the status says of a pause."""

    NOT_VISIBLE = "just created, not visible yet"
    MAY_ARRIVE = "an earlier write may still arrive"
    ROUND = "next try after a conflict or a lost answer"
    BUSY = "next try of what the platform is busy with"
    UNEXPLAINED = "next try after a refusal without a reason"
    READ = "next try of a read"
    RATE = "the rate at which requests are let through"
    LOOK = "next look at what takes its time"
    GATE = "gate of the next wave"


KINDS: Mapping[WaitReason, WaitKind] = MappingProxyType(
    {
        WaitReason.NOT_VISIBLE: WaitKind.SETTLING,
        WaitReason.MAY_ARRIVE: WaitKind.SETTLING,
        WaitReason.ROUND: WaitKind.RETRY_AFTER,
        WaitReason.BUSY: WaitKind.RETRY_AFTER,
        WaitReason.UNEXPLAINED: WaitKind.RETRY_AFTER,
        WaitReason.READ: WaitKind.RETRY_AFTER,
        WaitReason.RATE: WaitKind.RETRY_AFTER,
        WaitReason.LOOK: WaitKind.POLL_INTERVAL,
        WaitReason.GATE: WaitKind.GATE,
    }
)


@dataclass(frozen=True, slots=True)
class Pause:
    """Pauses of one reason: when the last is over (monotonic seconds), how many there are, and the newest error."""

    why: WaitReason
    until: float
    count: int = 1
    error: str = ""


class WaitReasons:
    """The pauses that last right now."""

    def __init__(self) -> None:
        self._lasting: dict[object, Pause] = {}

    @contextlib.contextmanager
    def told(
        self, why: WaitReason | None, seconds: float, now: float, error: str = "", count: int = 1
    ) -> Iterator[None]:
        """Report a pause of `seconds` from `now` on, for the time of the block.

        Args:
            why: the reason; None where something else reports the pause.
            error: what went wrong before, for people; empty where nothing did.
            count: how many items wait for it (count).
        """
        if why is None or seconds < SHORTEST_TOLD_S:
            yield
            return
        pause = object()
        self._lasting[pause] = Pause(why, now + seconds, count, error)
        try:
            yield
        finally:
            del self._lasting[pause]

    def waits(self) -> list[Pause]:
        """Return the pauses of each reason, added up."""
        found: dict[WaitReason, Pause] = {}
        for each in self._lasting.values():
            seen = found.get(each.why, replace(each, count=0))
            until, error = max(seen.until, each.until), each.error or seen.error
            found[each.why] = Pause(each.why, until, seen.count + each.count, error)
        return list(found.values())
