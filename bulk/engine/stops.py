"""Stops a run by itself: its time is over, too many items have failed, or the platform has no API there."""

import math
from collections.abc import Callable, Sequence

import anyio

from bulk.clock import Clock
from bulk.engine.engine_room import EngineRoom
from bulk.engine.status.warnings import FailureWarnings
from bulk.errors import BulkError, RunStopped
from bulk.govern.first_contact import ASK_USER
from bulk.model import ErrorCode, Outcome, OutcomeKind, Reply
from bulk.quantities import Share
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.scheduler import Scheduler

SHARES_FROM = 100
"""A limit that is a share applies once this many items have ended (count)."""
MISSING = 3
"""How many of the first items have to be missing before `GET /user` is asked (count), unless only one is left."""


def exceeded(limit: Share | None, outcome: Outcome, progress: Sequence[JobProgress]) -> RunStopped | None:
    """Return why `limits.failures` stops the run; None: the run goes on. `outcome` is not in `progress` yet."""
    if limit is None or outcome.kind is not OutcomeKind.FAILED:
        return None
    failed = sum(each.ended.get(OutcomeKind.FAILED, 0) for each in progress) + 1
    finished = sum(sum(each.ended.values()) for each in progress) + 1
    if (limit.fraction is not None and finished < SHARES_FROM) or failed <= limit.of(finished):
        return None
    return RunStopped(f"{failed:,} of {finished:,} items failed, more than limits.failures allows")


class TimeLimit:
    """Stops a run when its time is over: `limits.max_duration`, which `bulk set` can change; `run` is its task.

    Args:
        began_at: when the time starts to count (monotonic); None: when `run` is called.
    """

    def __init__(self, clock: Clock, most_s: float | None, began_at: float | None = None) -> None:
        self._clock, self._most_s, self._began_at = clock, most_s, began_at
        self._changed = anyio.Event()

    def set(self, most_s: float | None) -> None:
        """Let the run take at most `most_s` seconds from its start; None: without a limit."""
        self._most_s = most_s
        self._changed.set()

    async def run(self, stop: Callable[[BulkError], None]) -> None:
        """Call `stop` when the time is over."""
        began = self._clock.monotonic() if self._began_at is None else self._began_at
        while True:
            self._changed = anyio.Event()
            most_s = self._most_s
            left_s = math.inf if most_s is None else began + most_s - self._clock.monotonic()
            if most_s is not None and left_s <= 0.0:
                return stop(RunStopped(f"limits.max_duration of {most_s:g} s is over"))
            with anyio.move_on_after(left_s):
                await self._changed.wait()


class ApiDoubt:
    """Ends a run if all of its first items are missing and the platform has no API; `run` is its task.

    A server that answers everything with 404 looks like a platform without limits and without any of the items. Where
    limits and the first items are missing, `GET /user` decides before more items are lost.

    Args:
        failures, progress: one entry for each job.
        stop: is called if there is no API.
    """

    def __init__(
        self,
        room: EngineRoom,
        scheduler: Scheduler,
        failures: Sequence[FailureWarnings],
        progress: Sequence[JobProgress],
        stop: Callable[[BulkError], None],
    ) -> None:
        self._room, self._scheduler, self._failures, self._progress = room, scheduler, failures, progress
        self._stop = stop
        self._due = anyio.Event()

    def note(self) -> None:
        """Note that an item has ended without success."""
        if not self._room.lacks_limits or self._due.is_set():
            return
        missing, left = self._missing(last=1), sum(each.left for each in self._progress) - 1
        if missing >= MISSING or (missing and left == 1):
            self._room.governor.pause()
            self._due.set()

    async def run(self) -> None:
        """Wait until the first items are missing, then send `GET /user`; nothing else is sent until it is answered."""
        await self._due.wait()
        governor = self._room.governor
        tokens = [account.token for account in governor.accounts.values() if not account.is_minted]
        # limits are off here, so that this request needs no permit
        answer = await self._room.transport.send(ASK_USER, tokens[0], None) if tokens else None
        if isinstance(answer, Reply) and answer.status == 404 and (missing := self._missing()):
            self._stop(
                RunStopped(
                    f"GET /rate_limit, GET /user and the first {missing} items were all answered with 404: no API is "
                    "there. Does platform.base_url have the right path (mostly /api/v3)?"
                )
            )
        if not self._scheduler.is_paused:
            governor.go_on()

    def _missing(self, last: int = 0) -> int:
        """Return how many items were missing; 0 if any ended otherwise. `last`: items not in `progress` yet (count)."""
        missing = sum(each.counts.get(ErrorCode.NOT_FOUND, 0) for each in self._failures)
        return missing if missing == sum(sum(each.ended.values()) for each in self._progress) + last else 0
